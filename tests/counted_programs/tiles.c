/* A transpose by tiles whose size need not divide that of the matrix: ./tiles N TILE */
#include <stdlib.h>
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define AT(i, j) ((size_t)(i) * n + (j))

static void transpose(int n, int tile, const double *restrict a, double *restrict b)
{
    for (int ii = 0; ii < n; ii += 4)
        for (int jj = 0; jj < n; jj += tile)
            for (int i = ii; i < MIN(ii + 4, n); i++)
                for (int j = jj; j < MIN(jj + tile, n); j++)
                    b[AT(j, i)] = 2.0 * a[AT(i, j)];
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10, tile = argc > 2 ? atoi(argv[2]) : 4;
    double *a = calloc((size_t)n * n, sizeof *a), *b = malloc(n * n * sizeof(double));
    if (a == NULL || !b)
        return 1;
    transpose(n, tile, a, b);
    transpose(n, tile, b, a);
    free(a);
    free(b);
    return 0;
}
