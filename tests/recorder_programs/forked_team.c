/* A child with two threads that compute, its first one waits for them, and the parent for what the child writes. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

static void *work(void *to) {
  double sum = 0.0;
  for (int i = 0; i < 20000000; i++) sum += sqrt((double)i);
  *(double *)to = sum;
  return NULL;
}

int main(void) {
  int ends[2];
  double sum;
  if (pipe(ends)) return 1;
  if (fork()) return read(ends[0], &sum, sizeof sum) < 0;
  pthread_t threads[2];
  double sums[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &sums[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  _exit(write(ends[1], sums, sizeof sum) < 0);
}
