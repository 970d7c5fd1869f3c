/* Children of fork: behind many brief calls argv[1] brief ones, one after the other, and then
   two that compute and tell a pipe their result. */
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
  FILE *sink = fopen("/dev/null", "w");
  if (sink) setvbuf(sink, NULL, _IONBF, 0);
  for (int call = 0; sink && argc > 1 && call < 100000; call++) fputs("line\n", sink);
  int forks = argc < 3 || !fork(); /* argv[2]: a child of its own forks them */
  for (int i = argc > 1 && forks ? atoi(argv[1]) : 0; i > 0; i--) {
    if (!fork()) _exit(0);
    wait(NULL);
  }
  if (argc > 2 && forks) _exit(0);
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
