/* Teams of OpenMP whose threads differ in work, share a lock, and meet at a barrier; then some sleep and a file. */
#include <stdio.h>
#include <unistd.h>

static double work(int n) {
  volatile double sum = 0;
  for (int i = 1; i < n; i++) sum += 1.0 / i;
  return sum;
}

int main(void) {
  double total = 0;
  FILE *file = fopen("threads.out", "w");
  for (int step = 0; step < 10; step++) {
#pragma omp parallel reduction(+ : total)
    {
      total += work(2000000);
#pragma omp barrier
#pragma omp critical
      fprintf(file, "%d\n", step);
#pragma omp for schedule(dynamic, 4)
      for (int i = 0; i < 40; i++) total += work(2000);
    }
  }
  usleep(20000);
  fclose(file);
  printf("%f\n", total);
  return 0;
}
