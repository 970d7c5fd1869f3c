/* Sparse matrix times vector, rows compressed, with a dot product; ADJACENT puts the threads' sums next to each other. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  double sum;
#ifndef ADJACENT
  char apart[120];
#endif
} part[64] __attribute__((aligned(128)));

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 12000, each = 9, steps = 4;
  int *first = malloc(sizeof *first * (n + 1));
  int *column = malloc(sizeof *column * n * each);
  double *value = malloc(sizeof *value * n * each);
  double *x = malloc(sizeof *x * n);
  double *y = malloc(sizeof *y * n);
  unsigned seed = 1;
  for (int i = 0; i <= n; i++) first[i] = i * each - (i > n / 2 ? (i - n / 2) * 2 : 0);
  for (int i = 0; i < n; i++) {
    x[i] = 1;
    for (int k = first[i]; k < first[i + 1]; k++) {
      seed = seed * 1103515245u + 12345u;
      column[k] = (i + (int)(seed >> 16) % (n / 6)) % n;
      value[k] = 0.1;
    }
  }
  for (int t = 0; t < steps; t++) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      double sum = 0;
      for (int k = first[i]; k < first[i + 1]; k++) sum += value[k] * x[column[k]];
      y[i] = sum;
    }
#pragma omp parallel
    {
      volatile double *mine = &part[omp_get_thread_num()].sum;
#pragma omp for
      for (int i = 0; i < n; i++) *mine += x[i] * y[i];
    }
  }
  printf("%g\n", part[0].sum);
  return 0;
}
