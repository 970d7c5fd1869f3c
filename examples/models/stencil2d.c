/* Five-point stencil, two arrays in turn; ADJACENT puts the threads' sums next to each other. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  double sum;
#ifndef ADJACENT
  char apart[120];
#endif
} part[64] __attribute__((aligned(128)));

static void sweep(const double *from, double *to, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++)
      to[i * n + j] =
          0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 200, steps = argc > 2 ? atoi(argv[2]) : 6;
  double *u = malloc(sizeof *u * n * n);
  double *v = malloc(sizeof *v * n * n);
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) u[i * n + j] = v[i * n + j] = i == 0;
  for (int t = 0; t < steps; t++) {
    sweep(u, v, n);
    double *w = u;
    u = v;
    v = w;
  }
#pragma omp parallel
  {
    volatile double *sum = &part[omp_get_thread_num()].sum;
#pragma omp for
    for (int k = 0; k < n * n; k++) *sum += u[k];
  }
  printf("%g %g\n", u[n + n / 2], part[0].sum);
  return 0;
}
