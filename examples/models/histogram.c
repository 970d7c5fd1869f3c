/* Histogram of keys, a private one for each thread, added up at the end; ADJACENT puts counters of threads together. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 32, THREADS = 16 };
#ifdef ADJACENT
#define COUNT(bin, thread) count[(bin) * THREADS + (thread)]
#else
#define COUNT(bin, thread) count[(thread) * 64 + (bin)]
#endif
static int count[64 * THREADS] __attribute__((aligned(256)));
static int total[BINS];

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 200000;
  unsigned char *key = malloc(n);
  unsigned seed = 7;
  for (int i = 0; i < n; i++) {
    seed = seed * 1103515245u + 12345u;
    key[i] = seed >> 27;
  }
#pragma omp parallel
  {
    int me = omp_get_thread_num();
#pragma omp for
    for (int i = 0; i < n; i++) COUNT(key[i], me)++;
  }
  for (int thread = 0; thread < THREADS; thread++)
    for (int bin = 0; bin < BINS; bin++) total[bin] += COUNT(bin, thread);
  printf("%d\n", total[3]);
  return 0;
}
