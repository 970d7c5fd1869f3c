/* A scalar product whose additions have to keep their order; repaired, the compiler may reorder those of this sum. */
#include <stdio.h>
#include <stdlib.h>

static double product(int n, const double *x, const double *y)
{
    double sum = 0.0;
#ifdef REPAIRED
#pragma omp simd reduction(+ : sum)
#endif
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1500, steps = argc > 2 ? atoi(argv[2]) : 700000;
    double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), total = 0.0;
    for (int i = 0; i < n; i++) {
        x[i] = 1.0 / (1 + i);
        y[i] = 1.0;
    }
    for (int step = 0; step < steps; step++) {
        y[step % n] += 1e-9;
        total += product(n, x, y);
    }
    printf("%.8g\n", total);
    return 0;
}
