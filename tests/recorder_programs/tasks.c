/* Tasks in every way: in a loop by one thread, taken up at barriers and at the end; recursive with taskwait; in a group;
   a taskloop with a reduction; with data that are copied; undeferred. Prints how many were run. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static double work(long n) {
  volatile double x = 1.0;
  for (long i = 0; i < n; i++) x = x * 1.000001 + 1e-9;
  return x;
}

static long run, deep;

static long fibonacci(int n) {
  if (n < 2) return n;
  long a, b;
#pragma omp atomic
  deep += 2;
#pragma omp task shared(a)
  a = fibonacci(n - 1);
#pragma omp task shared(b) if (n > 4)
  b = fibonacci(n - 2);
#pragma omp taskwait
  return a + b;
}

int main(int argc, char **argv) {
  int loops = argc > 1 ? atoi(argv[1]) : 50;
  double sum = 0.0;
  struct {
    double values[7];
  } block = {{1, 2, 3, 4, 5, 6, 7}};
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < loops; i++) {
#pragma omp task firstprivate(block, i)
    {
      work(200000);
#pragma omp atomic
      run += block.values[i % 7] == i % 7 + 1;
    }
  }
#pragma omp parallel
  {
#pragma omp single nowait
    for (int i = 0; i < loops; i++) {
#pragma omp task
      {
        work(200000);
#pragma omp atomic
        run++;
      }
    }
  }
#pragma omp parallel
#pragma omp single
  {
#pragma omp taskgroup
    {
      for (int i = 0; i < loops; i++) {
#pragma omp task
        {
          work(20000);
#pragma omp atomic
          run++;
        }
      }
      work(200000);
    }
#pragma omp taskloop grainsize(10) reduction(+ : sum)
    for (int i = 0; i < 10 * loops; i++) sum += work(100) > 0;
  }
  long f = 0;
#pragma omp parallel
#pragma omp single
  f = fibonacci(12);
  printf("%ld %ld %ld %g\n", run, deep, f, sum);
  return f == 144 && sum == 10 * loops ? 0 : 1;
}
