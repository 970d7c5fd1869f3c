/* Conjugate gradients on the five-point Laplacian of an N by N grid, stored by rows, K steps. */
#include <stdio.h>
#include <stdlib.h>

static long build(long n, int *start, int *column, double *value) {
    long at = 0;
    for (long i = 0; i < n * n; i++) {
        long x = i % n, y = i / n;
        start[i] = at;
        if (y > 0) column[at] = i - n, value[at++] = -1;
        if (x > 0) column[at] = i - 1, value[at++] = -1;
        column[at] = i, value[at++] = 4;
        if (x < n - 1) column[at] = i + 1, value[at++] = -1;
        if (y < n - 1) column[at] = i + n, value[at++] = -1;
    }
    start[n * n] = at;
    return at;
}

static double dot(long m, const double *x, const double *y) {
    double sum = 0;
    for (long i = 0; i < m; i++) sum += x[i] * y[i];
    return sum;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 50, steps = argc > 2 ? atol(argv[2]) : 30, m = n * n;
    int *start = malloc((m + 1) * sizeof *start), *column = malloc(5 * m * sizeof *column);
    double *value = malloc(5 * m * sizeof *value), *x = calloc(m, sizeof *x);
    double *r = malloc(m * sizeof *r), *p = malloc(m * sizeof *p), *q = malloc(m * sizeof *q);
    build(n, start, column, value);
    for (long i = 0; i < m; i++) r[i] = p[i] = 1;
    double rho = dot(m, r, r);
    for (long k = 0; k < steps; k++) {
        for (long i = 0; i < m; i++) {
            double sum = 0;
            for (int e = start[i]; e < start[i + 1]; e++) sum += value[e] * p[column[e]];
            q[i] = sum;
        }
        double alpha = rho / dot(m, p, q);
        for (long i = 0; i < m; i++) x[i] += alpha * p[i], r[i] -= alpha * q[i];
        double next = dot(m, r, r), beta = next / rho;
        rho = next;
        for (long i = 0; i < m; i++) p[i] = r[i] + beta * p[i];
    }
    printf("%g\n", rho);
    return 0;
}
