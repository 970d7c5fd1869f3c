/* Tasks that end when somebody says so, with data that are copied, and a critical section that all of them go through. */
#include <omp.h>
#include <stdio.h>

static double work(int turns) {
  double x = 1.0;
  for (int i = 0; i < turns; i++) x = x * 1.0000001 + 1e-9;
  return x;
}

int main(void) {
  double sum = 0.0;
  int done = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
  for (int i = 0; i < 40; i++) {
    omp_event_handle_t ended;
#pragma omp task detach(ended) firstprivate(i) shared(sum, done)
    {
      double mine = work(20000);
#pragma omp critical
      sum += mine;
#pragma omp atomic
      done++;
      omp_fulfill_event(ended);
    }
  }
  printf("%d %d\n", done, sum > 40.0);
  return 0;
}
