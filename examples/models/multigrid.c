/* V-cycles for a Poisson equation in two dimensions; ADJACENT puts the threads' norms next to each other. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEVELS = 4 };
static double *u[LEVELS], *f[LEVELS], *r[LEVELS];
static struct {
  double norm;
#ifndef ADJACENT
  char apart[120];
#endif
} part[64] __attribute__((aligned(128)));

static void smooth(double *u, const double *f, double *r, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++) {
      int at = i * n + j;
      r[at] = f[at] - 4 * u[at] + u[at - 1] + u[at + 1] + u[at - n] + u[at + n];
    }
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < n - 1; j++) u[i * n + j] += 0.2 * r[i * n + j];
}
static void restrict_to(const double *r, double *coarse, int n) {
  int m = n / 2 + 1;
#pragma omp parallel for
  for (int i = 1; i < m - 1; i++)
    for (int j = 1; j < m - 1; j++) coarse[i * m + j] = r[2 * i * n + 2 * j];
}
static void prolongate(double *fine, const double *coarse, int n) {
  int m = n / 2 + 1;
#pragma omp parallel for
  for (int i = 1; i < m - 1; i++)
    for (int j = 1; j < m - 1; j++) {
      double one = coarse[i * m + j];
      fine[2 * i * n + 2 * j] += one;
      fine[2 * i * n + 2 * j + 1] += 0.5 * one;
      fine[(2 * i + 1) * n + 2 * j] += 0.5 * one;
    }
}
static void measure(const double *r, int n) {
#pragma omp parallel
  {
    volatile double *norm = &part[omp_get_thread_num()].norm;
#pragma omp for
    for (int i = 0; i < n * n; i++) *norm += r[i] * r[i];
  }
}

int main(int argc, char **argv) {
  int top = argc > 1 ? atoi(argv[1]) : 129, cycles = 3;
  for (int level = 0, n = top; level < LEVELS; level++, n = n / 2 + 1) {
    u[level] = calloc(n * n, sizeof **u);
    f[level] = calloc(n * n, sizeof **f);
    r[level] = calloc(n * n, sizeof **r);
  }
  for (int i = 0; i < top * top; i++) f[0][i] = i % 5;
  for (int cycle = 0; cycle < cycles; cycle++) {
    int n = top;
    for (int level = 0; level < LEVELS - 1; level++, n = n / 2 + 1) {
      smooth(u[level], f[level], r[level], n);
      restrict_to(r[level], f[level + 1], n);
    }
    smooth(u[LEVELS - 1], f[LEVELS - 1], r[LEVELS - 1], n);
    for (int level = LEVELS - 2; level >= 0; level--) {
      n = (n - 1) * 2;
      n += n % 2 == 0;
      prolongate(u[level], u[level + 1], n);
      smooth(u[level], f[level], r[level], n);
    }
    measure(r[0], top);
  }
  printf("%g\n", part[0].norm);
  return 0;
}
