/* A sweep over a field, a task for each cell; repaired, a taskloop whose tasks take 100 us or more. */
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 200000, STEPS = 10 };

static double relax(const double *from, long i) {
  double sum = 0.0;
  for (int k = 1; k < 10; k++) sum += from[i] / k + (from[i - 1] - from[i + 1]) / (k + 1);
  return 0.5 * from[i] + 0.001 * sum;
}

static void sweep(const double *from, double *to) {
#pragma omp parallel
#pragma omp single
#ifdef REPAIRED
#pragma omp taskloop grainsize(4000)
  for (long i = 1; i < CELLS - 1; i++) to[i] = relax(from, i);
#else
  for (long i = 1; i < CELLS - 1; i++) {
#pragma omp task firstprivate(i)
    to[i] = relax(from, i);
  }
#endif
}

int main(void) {
  double *from = malloc(CELLS * sizeof *from), *to = malloc(CELLS * sizeof *to);
  for (long i = 0; i < CELLS; i++) from[i] = to[i] = (double)(i % 7);
  for (int step = 0; step < STEPS; step++) {
    sweep(from, to);
    double *other = from;
    from = to;
    to = other;
  }
  printf("%.9f\n", from[CELLS / 2]);
  free(from);
  free(to);
  return 0;
}
