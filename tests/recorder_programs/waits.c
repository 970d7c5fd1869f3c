/* Threads of C11 that wait for a semaphore and for a futex, each until the first thread has computed for a while. */
#include <linux/futex.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static sem_t semaphore;
static atomic_int word;

static int wait_for_semaphore(void *unused) {
  (void)unused;
  return sem_wait(&semaphore);
}

static int wait_for_word(void *unused) {
  (void)unused;
  while (!atomic_load(&word)) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  return 0;
}

int main(void) {
  thrd_t threads[2];
  sem_init(&semaphore, 0, 0);
  thrd_create(&threads[0], wait_for_semaphore, NULL);
  thrd_create(&threads[1], wait_for_word, NULL);
  while (clock() < CLOCKS_PER_SEC / 5) {
  }
  sem_post(&semaphore);
  atomic_store(&word, 1);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  int done = 0;
  for (int t = 0; t < 2; t++) {
    int code;
    done += thrd_join(threads[t], &code) == thrd_success && code == 0;
  }
  return done != 2;
}
