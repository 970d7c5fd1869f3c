/* Writes over its environment, as daemons do for ps, and starts itself with an empty one, as env -i does. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc > 1) {
    volatile unsigned long total = 0;
    for (unsigned long i = 0; i < 300000000; i++) total += i * i;
    printf("%lu\n", total);
    return 0;
  }
  for (char **one = environ; *one; one++) memset(*one, 'x', strlen(*one));
  clearenv();
  if (!fork()) {
    execvp(argv[0], (char *[]){argv[0], "worker", NULL});
    _exit(1);
  }
  wait(NULL);
  return 0;
}
