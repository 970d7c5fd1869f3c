/* STREAM's triad: a[i] = b[i] + s * c[i], N elements, K times. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 100000, times = argc > 2 ? atol(argv[2]) : 10;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
    for (long i = 0; i < n; i++) a[i] = 0, b[i] = i, c[i] = 2 * i;
    for (long k = 0; k < times; k++) {
        double s = 0.5 + k;
        for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i];
    }
    printf("%g\n", a[n / 2]);
    return 0;
}
