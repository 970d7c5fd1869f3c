/* A critical section that all threads go through all the time, and writes of a few bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
  long turns = count > 1 ? atol(words[1]) : 200000, bins[64] = {0};
#pragma omp parallel for
  for (long i = 0; i < turns; i++) {
    unsigned long seed = (unsigned long)i * 6364136223846793005ul;
#pragma omp critical
    bins[seed >> 58]++;
  }
  int file = open("/dev/null", O_WRONLY);
  for (long i = 0; i < turns; i++)
    if (write(file, "1234567", 7) != 7) return 1;
  close(file);
  long sum = 0;
  for (int i = 0; i < 64; i++) sum += bins[i];
  printf("%ld\n", sum);
  return 0;
}
