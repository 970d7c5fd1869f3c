/* Gaussian elimination without pivoting on a diagonally dominant matrix. */
#include <stdio.h>
#include <stdlib.h>

static void eliminate(int n, double *a)
{
    for (int k = 0; k < n - 1; k++)
        for (int i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; j++)
                a[i * n + j] = a[i * n + j] - factor * a[k * n + j];
        }
}

int main(int count, char **words)
{
    int n = count > 1 ? atoi(words[1]) : 50;
    double *a = malloc(sizeof(double) * n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] = i == j ? 2.0 * n : 1.0 / (1 + i + j);
    eliminate(n, a);
    printf("%.12g\n", a[n * n - 1]);
    free(a);
    return 0;
}
