/* Sparse matrix times vector, N rows of 16 entries at scattered columns, K times. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 10000, times = argc > 2 ? atol(argv[2]) : 10;
    int *column = malloc(16 * n * sizeof *column);
    double *value = malloc(16 * n * sizeof *value), *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    for (long e = 0; e < 16 * n; e++) column[e] = (e * 7919 + e / 16) % n, value[e] = 1.0 / (1 + e % 16);
    for (long i = 0; i < n; i++) x[i] = i;
    for (long k = 0; k < times; k++) {
        for (long i = 0; i < n; i++) {
            double sum = 0;
            for (long e = 16 * i; e < 16 * i + 16; e++) sum += value[e] * x[column[e]];
            y[i] = sum;
        }
        double *swap = x;
        x = y, y = swap;
    }
    printf("%g\n", x[n / 2]);
    return 0;
}
