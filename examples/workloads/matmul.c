/* C = C + A * B of N by N numbers, the middle loop running along rows. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 100;
    double *a = malloc(n * n * sizeof *a), *b = malloc(n * n * sizeof *b), *c = calloc(n * n, sizeof *c);
    for (long i = 0; i < n * n; i++) a[i] = i % 7, b[i] = i % 5;
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
    printf("%g\n", c[n * n / 2]);
    return 0;
}
