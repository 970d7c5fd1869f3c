/* A matrix is added to the transpose of another. With rows of 4 KiB all elements of a column fall into one set of the
   first cache; repaired, rows are padded by one line. */
#include <stdio.h>
#include <stdlib.h>

enum {
    N = 256,
#ifdef REPAIRED
    ROW = 512 + 8
#else
    ROW = 512
#endif
};

static void add_transposed(const double *a, double *b)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            b[i * ROW + j] += a[j * ROW + i];
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 4000;
    double *a = malloc((size_t)N * ROW * sizeof *a), *b = calloc((size_t)N * ROW, sizeof *b);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i * ROW + j] = 1e-3 * ((31 * i + j) % 1000);
    for (int step = 0; step < steps; step++)
        add_transposed(a, b);
    printf("%.10g\n", b[7 * ROW + 5]);
    return 0;
}
