/* Sweeps of a stencil over a plate: enough work to be sampled, little enough for callgrind. */
#include <stdio.h>
#include <stdlib.h>

#define N 300

static void sweep(const double *u, double *v) {
  for (int j = 1; j < N - 1; j++)
    for (int i = 1; i < N - 1; i++)
      v[j * N + i] = 0.25 * (u[j * N + i - 1] + u[j * N + i + 1] + u[(j - 1) * N + i] + u[(j + 1) * N + i]);
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 100;
  double *u = calloc(N * N, sizeof *u), *v = calloc(N * N, sizeof *v);
  for (int i = 0; i < N; i++) u[i] = v[i] = 1.0;
  for (int step = 0; step < steps; step++) {
    sweep(u, v);
    sweep(v, u);
  }
  printf("%.12g\n", u[N + N / 2]);
  return 0;
}
