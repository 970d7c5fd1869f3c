/* Small programs before and after a change: KIND and CHANGED say which, N how large. predict.py lists them. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef PAD
#define PAD 0
#endif
#ifndef BLOCK
#define BLOCK 32
#endif
#define MIN(a, b) ((a) < (b) ? (a) : (b))
static double a[N][N + PAD], b[N][N + PAD], c[N][N + PAD], y[N];
#ifndef APART
#define APART 8
#endif
static struct {
  long count;
  char apart[APART];
} part[64] __attribute__((aligned(128)));

int main(void) {
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) a[i][j] = i + j, b[i][j] = i - j;
#if KIND == 1 && CHANGED == 0 /* transposition; in blocks */
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) b[i][j] = a[j][i];
#elif KIND == 1
  for (int ii = 0; ii < N; ii += BLOCK)
    for (int jj = 0; jj < N; jj += BLOCK)
      for (int i = ii; i < MIN(ii + BLOCK, N); i++)
        for (int j = jj; j < MIN(jj + BLOCK, N); j++) b[i][j] = a[j][i];
#elif KIND == 2 && CHANGED == 0 /* matrix product; interchanged; in blocks */
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
      c[i][j] = sum;
    }
#elif KIND == 2 && CHANGED == 1
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
#elif KIND == 2
  for (int ii = 0; ii < N; ii += BLOCK)
    for (int jj = 0; jj < N; jj += BLOCK)
      for (int kk = 0; kk < N; kk += BLOCK)
        for (int i = ii; i < MIN(ii + BLOCK, N); i++)
          for (int j = jj; j < MIN(jj + BLOCK, N); j++)
            for (int k = kk; k < MIN(kk + BLOCK, N); k++) c[i][j] += a[i][k] * b[k][j];
#elif KIND == 3 && CHANGED == 0 /* sums of columns; interchanged */
#pragma omp parallel for
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) *(volatile double *)&y[i] += a[j][i];
#elif KIND == 3
  for (int j = 0; j < N; j++)
    for (int i = 0; i < N; i++) *(volatile double *)&y[i] += a[j][i];
#elif KIND == 4 && CHANGED == 0 /* a stencil that goes down the columns; interchanged */
#pragma omp parallel for
  for (int j = 1; j < N - 1; j++)
    for (int i = 1; i < N - 1; i++) c[i][j] = a[i][j] + b[i][j] + b[i][j - 1] + b[i][j + 1];
#elif KIND == 4
  for (int i = 1; i < N - 1; i++)
    for (int j = 1; j < N - 1; j++) c[i][j] = a[i][j] + b[i][j] + b[i][j - 1] + b[i][j + 1];
#elif KIND == 5 /* columns of a matrix whose rows are a power of two; padded */
#pragma omp parallel for
  for (int i = 0; i < COLUMNS; i++)
    for (int j = 0; j < N; j++) a[j][i] += 1;
#elif KIND == 6 /* counters of threads next to each other; apart */
#pragma omp parallel
  {
    volatile long *mine = &part[omp_get_thread_num()].count;
#pragma omp for
    for (int i = 0; i < N * 8; i++) *mine += i;
  }
#elif KIND == 7 /* a triangle; other schedules */
#pragma omp parallel for SCHEDULE
  for (int i = 0; i < N; i++)
    for (int j = 0; j < i; j++) c[i][j] = a[i][j] + b[i][j];
#endif
  printf("%g %g %g %ld\n", b[N / 2][1], c[N / 2][1], y[1], part[0].count);
  return 0;
}
