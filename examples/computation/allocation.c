/* Each cell gets its neighbours in a list made anew; repaired, one list is used for all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double average(int n, const double *u, int at)
{
#ifdef REPAIRED
    double near[8];
#else
    double *near = malloc(8 * sizeof *near), *copy = malloc(8 * sizeof *copy);
#endif
    for (int k = 0; k < 8; k++) {
        int i = at + k * k;
        near[k] = u[i < n ? i : i % n];
    }
    double sum = 0.0;
#ifdef REPAIRED
    for (int k = 0; k < 8; k++)
        sum += near[k];
#else
    memcpy(copy, near, 8 * sizeof *copy);
    for (int k = 0; k < 8; k++)
        sum += copy[k];
    free(near);
    free(copy);
#endif
    return sum / 8.0;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4096, steps = argc > 2 ? atoi(argv[2]) : 2000;
    double *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v);
    for (int i = 0; i < n; i++)
        u[i] = i % 10;
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < n; i++)
            v[i] = average(n, u, i);
        double *swap = u;
        u = v;
        v = swap;
    }
    printf("%.10g\n", u[n / 2]);
    return 0;
}
