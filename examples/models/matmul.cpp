// Matrix product in the order of the textbook: the inner loop goes down a column.
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 120;
  std::vector<double> a(n * n, 1.0), b(n * n, 2.0), c(n * n);
  double *pa = a.data(), *pb = b.data(), *pc = c.data();
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k < n; k++) sum += pa[i * n + k] * pb[k * n + j];
      pc[i * n + j] = sum;
    }
  std::printf("%g\n", c[n + 1]);
}
