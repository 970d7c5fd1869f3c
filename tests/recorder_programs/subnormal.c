/* Works on numbers that are too small to be normal, and then on others. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000 };

__attribute__((noinline)) static void decay(double *u, double factor, int steps) {
  for (int t = 0; t < steps; t++)
    for (int i = 0; i < N; i++) u[i] = u[i] * factor + u[i] * 0.25;
}

__attribute__((noinline)) static void grow(double *v, double factor, int steps) {
  for (int t = 0; t < steps; t++)
    for (int i = 0; i < N; i++) v[i] = v[i] * factor + 1.0;
}

int main(void) {
  double *u = malloc(N * sizeof *u), *v = malloc(N * sizeof *v), sum = 0;
  for (int i = 0; i < N; i++) u[i] = 1e-310 * (i % 7 + 1), v[i] = i;
  decay(u, 0.75, 400);
  grow(v, 0.5, 12000);
  for (int i = 0; i < N; i++) sum += u[i] + v[i];
  printf("%g\n", sum);
  return 0;
}
