/* Jacobi's five-point stencil on an N by N grid, K steps. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 200, steps = argc > 2 ? atol(argv[2]) : 20;
    double *u = malloc(n * n * sizeof *u), *v = malloc(n * n * sizeof *v);
    for (long i = 0; i < n * n; i++) u[i] = v[i] = i % 11;
    for (long k = 0; k < steps; k++) {
        for (long y = 1; y < n - 1; y++)
            for (long x = 1; x < n - 1; x++) {
                long i = y * n + x;
                v[i] = 0.2 * (u[i] + u[i - 1] + u[i + 1] + u[i - n] + u[i + n]);
            }
        double *swap = u;
        u = v, v = swap;
    }
    printf("%g\n", u[n * n / 2]);
    return 0;
}
