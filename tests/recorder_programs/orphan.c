/* A child of fork forks and ends at once; its own child is nobody's when it computes, and tells a pipe its result. */
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double compute(double seconds) {
  double sum = 0;
  while ((double)clock() < seconds * CLOCKS_PER_SEC)
    for (int i = 1; i < 1000; i++) sum += 1.0 / i;
  return sum;
}

int main(void) {
  int ends[2];
  double sum = 0;
  if (pipe(ends)) return 1;
  pid_t child = fork();
  if (!child) {
    pid_t parent = getpid();
    if (!fork()) {
      while (getppid() == parent) usleep(100);
      sum = compute(0.2);
      return write(ends[1], &sum, sizeof sum) != sizeof sum;
    }
    _exit(0);
  }
  waitpid(child, NULL, 0);
  close(ends[1]);
  return read(ends[0], &sum, sizeof sum) != sizeof sum || read(ends[0], &sum, 1);
}
