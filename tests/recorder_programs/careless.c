/* A program that closes descriptors that it does not know, opens files in their places, jumps out of a call when a signal
   comes, and goes on in between. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;

static void jump(int number) { siglongjmp(back, number); }

static void *read_much(void *unused) {
  char bytes[8];
  int file = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 3000; i++)
    if (read(file, bytes, sizeof bytes) != (ssize_t)sizeof bytes) break;
  close(file);
  return unused;
}

int main(void) {
  pthread_t thread;
  int files[64];
  for (int i = 3; i < 256; i++) close(i);
  for (int i = 0; i < 64; i++) files[i] = open("careless.out", O_WRONLY | O_CREAT | O_APPEND, 0644);
  signal(SIGALRM, jump);
  struct itimerval soon = {{0, 0}, {0, 20000}};
  if (!sigsetjmp(back, 1)) {
    setitimer(ITIMER_REAL, &soon, NULL);
    for (;;) sleep(10);
  }
  for (int i = 0; i < 4; i++) {
    pthread_create(&thread, NULL, read_much, NULL);
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < 64; i++)
    if (write(files[i], "mine\n", 5) != 5) return 1;
  printf("done\n");
  return 0;
}
