/* Two threads that take a lock for each term; the first thread only starts them and waits. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double total;

static void *work(void *unused) {
  for (int i = 1; i < 12000000; i++) {
    pthread_mutex_lock(&lock);
    total += 1.0 / i;
    pthread_mutex_unlock(&lock);
  }
  usleep(20000);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t threads[2];
  (void)argv;
  for (int t = 0; t < 2; t++) pthread_create(&threads[t], NULL, work, NULL);
  if (argc > 1) work(NULL); /* the first thread works as well */
  for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
  printf("%f\n", total);
  return 0;
}
