/* A stencil with 27 points in three dimensions, some of the loops of fixed length: ./cubes N STEPS */
#include <stdlib.h>
#ifndef RADIUS
#define RADIUS 1
#endif

static double *make(size_t n)
{
    double *a = malloc(n * sizeof(double));
    for (size_t k = 0; k < n; k++)
        a[k] = 0.0;
    return a;
}

static void apply(const int n, const double *u, double *v)
{
    for (int k = RADIUS; k < n - RADIUS; k++)
        for (int j = RADIUS; j < n - RADIUS; j++)
            for (int i = RADIUS; i < n - RADIUS; i++) {
                double sum = 0.0;
                for (int dk = -RADIUS; dk <= RADIUS; dk++)
                    for (int dj = -RADIUS; dj <= RADIUS; dj++)
                        for (int di = -RADIUS; di <= RADIUS; di++)
                            if (di != 0 || dj != 0 || dk != 0)
                                sum += u[((k + dk) * n + j + dj) * n + i + di];
                v[(k * n + j) * n + i] = sum / 26.0;
            }
}

int main(int argc, char **argv)
{
    const int n = atoi(argv[1]), steps = atoi(argv[2]);
    double *u = make((size_t)n * n * n), *v = make((size_t)n * n * n);
    for (int t = 0; t < steps; t += 2) {
        apply(n, u, v);
        if (t + 1 < steps)
            apply(n, v, u);
    }
    free(u);
    free(v);
    return 0;
}
