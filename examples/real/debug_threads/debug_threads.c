/* Threads and a loop that is built without optimization: the compiler makes functions of the regions. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000000, PASSES = 200 };

int main(void)
{
    double *a = malloc(sizeof *a * N), *b = malloc(sizeof *b * N);
    for (int i = 0; i < N; i++)
        a[i] = i % 17;
    for (int pass = 0; pass < PASSES; pass++) {
#pragma omp parallel for
        for (int i = 1; i < N - 1; i++) {
            double left = a[i - 1], here = a[i], right = a[i + 1];
            b[i] = 0.25 * left + 0.5 * here + 0.25 * right + 1e-3 * here * here;
        }
        double *swap = a;
        a = b;
        b = swap;
    }
    printf("%f\n", a[N / 2]);
}
