/* A product of matrices against the order of memory. The compiler moves the loop before the parallel region into its call. */
#include <stdio.h>
#define N 700
static double a[N][N], b[N][N], c[N][N];
int main(void) {
  for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { a[i][j] = i + j; b[i][j] = i - j; }
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
    }
  printf("%g\n", c[3][5]);
}
