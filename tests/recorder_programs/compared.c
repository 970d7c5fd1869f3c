/* Sorts by a function that compares. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 200000 };

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  double *v = malloc(N * sizeof *v), sum = 0;
  unsigned state = 1;
  for (int t = 0; t < 12; t++) {
    for (int i = 0; i < N; i++) v[i] = (state = state * 1664525u + 1013904223u);
    qsort(v, N, sizeof *v, compare);
    sum += v[N / 2];
  }
  printf("%g\n", sum);
  return 0;
}
