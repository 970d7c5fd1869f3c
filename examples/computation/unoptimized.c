/* Heat on a plate. The fault is in the Makefile: built without -O, repaired with -O3. */
#include <stdio.h>
#include <stdlib.h>

static void relax(int n, const double *u, double *v)
{
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            v[i * n + j] = 0.25 * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] + u[i * n + j + 1]);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 600, steps = argc > 2 ? atoi(argv[2]) : 600;
    double *u = calloc((size_t)n * n, sizeof *u), *v = calloc((size_t)n * n, sizeof *v);
    for (int i = 0; i < n; i++)
        u[i] = v[i] = 100.0;
    for (int step = 0; step < steps; step++) {
        relax(n, u, v);
        double *swap = u;
        u = v;
        v = swap;
    }
    printf("%.10g\n", u[(n / 2) * n + n / 2]);
    free(u);
    free(v);
    return 0;
}
