/* Children of fork: argv[1] brief ones, one after the other, and then two that compute and tell a pipe their result. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double compute(double seconds) {
  double sum = 0;
  while ((double)clock() < seconds * CLOCKS_PER_SEC)
    for (int i = 1; i < 1000; i++) sum += 1.0 / i;
  return sum;
}

int main(int argc, char **argv) {
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
    if (!fork()) _exit(0);
    wait(NULL);
  }
  int ends[2];
  double part, sum = 0;
  if (pipe(ends)) return 1;
  for (int worker = 0; worker < 2; worker++)
    if (!fork()) {
      part = compute(0.2);
      return write(ends[1], &part, sizeof part) != sizeof part;
    }
  for (int worker = 0; worker < 2; worker++)
    if (read(ends[0], &part, sizeof part) == sizeof part) sum += part;
  while (waitpid(-1, NULL, 0) > 0) {
  }
  return !(sum > 0);
}
