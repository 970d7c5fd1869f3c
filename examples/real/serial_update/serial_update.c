/* Forces are computed by all threads, positions updated by one. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 200000, STEPS = 150 };

static void compute_forces(const double *x, double *f)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        f[i] = sin(x[i]) / (1.0 + x[i] * x[i]);
}

static void move_bodies(double *x, double *v, const double *f)
{
#ifdef REPAIRED
#pragma omp parallel for
#endif
    for (int i = 0; i < N; i++) {
        v[i] += 1e-3 * f[i] - 1e-4 * v[i] * sqrt(fabs(v[i]));
        x[i] = fmod(x[i] + 1e-3 * v[i] + 10.0, 10.0);
    }
}

int main(void)
{
    double *x = malloc(sizeof *x * N), *v = calloc(N, sizeof *v), *f = malloc(sizeof *f * N);
    for (int i = 0; i < N; i++)
        x[i] = 10.0 * i / N;
    for (int step = 0; step < STEPS; step++) {
        compute_forces(x, f);
        move_bodies(x, v, f);
    }
    printf("%f\n", x[N / 2]);
}
