/* Roots that wait for each other: long enough to be sampled, and few enough instructions for callgrind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000

static double sweep(const double *u, double start) {
  double last = start;
  for (int i = 0; i < N; i++) last = sqrt(last + u[i]) / 1.5;
  return last;
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 100;
  static double u[N];
  double last = 1.0;
  for (int i = 0; i < N; i++) u[i] = 1.0 + i % 3;
  for (int step = 0; step < steps; step++) last = sweep(u, last);
  printf("%.12g\n", last);
  return 0;
}
