/* Two threads for each of many steps, as a parallel loop that is made of POSIX threads; the first one waits. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static double sums[2];

static void *work(void *argument) {
  double *sum = argument;
  for (int i = 1; i < 200000; i++) *sum += 1.0 / i;
  return NULL;
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 100;
  for (int step = 0; step < steps; step++) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  }
  printf("%g\n", sums[0] + sums[1]);
  return 0;
}
