/* A matrix is added to its transpose: one of them is walked through along its columns whatever the order of the loops. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 2100, STEPS = 24, BLOCK = 32 };

static void add_transpose(const double *a, double *b)
{
#ifdef REPAIRED
    for (int ii = 0; ii < N; ii += BLOCK)
        for (int jj = 0; jj < N; jj += BLOCK)
            for (int i = ii; i < N && i < ii + BLOCK; i++)
                for (int j = jj; j < N && j < jj + BLOCK; j++)
                    b[i * N + j] += a[j * N + i];
#else
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            b[i * N + j] += a[j * N + i];
#endif
}

int main(void)
{
    double *a = malloc(sizeof *a * N * N), *b = calloc(N * N, sizeof *b);
    for (int i = 0; i < N * N; i++)
        a[i] = i % 13;
    for (int step = 0; step < STEPS; step++)
        add_transpose(a, b);
    printf("%f\n", b[N + 5]);
}
