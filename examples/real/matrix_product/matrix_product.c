/* A matrix product whose inner loop walks down the columns of the second factor. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000 };

static void multiply(const double *a, const double *b, double *c)
{
    for (int i = 0; i < N; i++)
#ifdef REPAIRED
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i * N + j] += a[i * N + k] * b[k * N + j];
#else
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                c[i * N + j] += a[i * N + k] * b[k * N + j];
#endif
}

int main(void)
{
    double *a = malloc(sizeof *a * N * N), *b = malloc(sizeof *b * N * N), *c = calloc(N * N, sizeof *c);
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 7;
        b[i] = i % 11;
    }
    multiply(a, b, c);
    printf("%f\n", c[N * N / 2]);
}
