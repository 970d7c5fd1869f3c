// Forces of pairs of molecules from lists of neighbours within a cut-off; ADJACENT puts the threads' sums together.
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#include <vector>

struct Part {
  double virial;
#ifndef ADJACENT
  char apart[120];
#endif
};

int main(int argc, char **argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 3000;
  std::vector<double> x(3 * n);
  std::vector<double> force(3 * n);
  unsigned seed = 3;
  for (int i = 0; i < 3 * n; i++) {
    seed = seed * 1103515245u + 12345u;
    x[i] = (seed >> 8) % 10000 * 1e-3;
  }
  std::vector<int> first(n + 1);
  std::vector<int> neighbour(40 * n);
  for (int i = 0, k = 0; i < n; i++) {
    first[i] = k;
    seed = seed * 1103515245u + 12345u;
    int mine = 10 + (seed >> 20) % 20;
    for (int one = 0; one < mine; one++) {
      seed = seed * 1103515245u + 12345u;
      neighbour[k++] = (i + (int)((seed >> 16) % 400)) % n;
    }
    first[i + 1] = k;
  }
  std::vector<Part> part(64);
  for (int t = 0; t < 2; t++) {
#pragma omp parallel
    {
      volatile double *virial = &part[omp_get_thread_num()].virial;
#pragma omp for
      for (int i = 0; i < n; i++)
        for (int k = first[i]; k < first[i + 1]; k++) {
          int j = neighbour[k];
          double dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1], dz = x[3 * i + 2] - x[3 * j + 2];
          double r2 = dx * dx + dy * dy + dz * dz;
          if (r2 < 20.0) {
            double f = 1.0 / (r2 + 0.1);
            force[3 * i] += f * dx, force[3 * i + 1] += f * dy, force[3 * i + 2] += f * dz;
            *virial += f * r2;
          }
        }
    }
  }
  std::printf("%g %g\n", force[1], part[0].virial);
}
