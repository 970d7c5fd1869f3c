/* Matrix multiplication, the textbook's three loops. */
#include <stdio.h>
#include <stdlib.h>

static void multiply(int n, const double *a, const double *b, double *c)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0.0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

int main(int count, char **words)
{
    int n = count > 1 ? atoi(words[1]) : 40;
    double *a = malloc(sizeof(double) * n * n), *b = malloc(sizeof(double) * n * n), *c = malloc(sizeof(double) * n * n);
    for (int i = 0; i < n * n; i++) {
        a[i] = i % 7;
        b[i] = i % 5;
    }
    multiply(n, a, b, c);
    printf("%.12g\n", c[n * n - 1]);
    free(a);
    free(b);
    free(c);
    return 0;
}
