/* A child of fork that waits for a child of its own, computes, and is killed. */
#include <signal.h>
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
    if (!fork()) _exit(!compute(0.4));
    wait(NULL);
    sum = compute(0.2);
    if (write(ends[1], &sum, sizeof sum) == sizeof sum) pause();
    return 1;
  }
  if (read(ends[0], &sum, sizeof sum) != sizeof sum) return 1;
  kill(child, SIGTERM);
  return waitpid(child, NULL, 0) != child;
}
