/* Products of a triangular matrix with vectors: the rows differ in length. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1500, PASSES = 2000 };

static void multiply(const double *a, const double *x, double *y)
{
#ifdef REPAIRED
#pragma omp parallel for schedule(dynamic, 32)
#else
#pragma omp parallel for
#endif
    for (int i = 0; i < N; i++) {
        double sum = 0.0;
        for (int j = 0; j <= i; j++)
            sum += a[i * N + j] * x[j] / (1.0 + j);
        y[i] = sum;
    }
}

int main(void)
{
    double *a = malloc(sizeof *a * N * N), *x = malloc(sizeof *x * N), *y = malloc(sizeof *y * N);
    for (int i = 0; i < N * N; i++)
        a[i] = 1.0 / (1 + i % 97);
    for (int i = 0; i < N; i++)
        x[i] = 1.0;
    for (int pass = 0; pass < PASSES; pass++) {
        multiply(a, x, y);
        for (int i = 0; i < N; i++)
            x[i] = 0.5 * x[i] + 1e-3 * y[i];
    }
    printf("%f\n", x[N - 1]);
}
