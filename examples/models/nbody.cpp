// Forces between all pairs of bodies, an array of structures; ADJACENT puts the threads' energies next to each other.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#include <vector>

struct Body {
  double x, y, z, mass, fx, fy, fz, old;
};
struct Part {
  double energy;
#ifndef ADJACENT
  char apart[120];
#endif
};

int main(int argc, char **argv) {
  int n = argc > 1 ? std::atoi(argv[1]) : 700;
  std::vector<Body> body(n);
  for (int i = 0; i < n; i++) body[i] = {i % 7 * 1.0, i % 11 * 1.0, i % 13 * 1.0, 1.0, 0, 0, 0, 0};
  std::vector<Part> part(64);
  for (int t = 0; t < 2; t++) {
#pragma omp parallel
    {
      volatile double *energy = &part[omp_get_thread_num()].energy;
#pragma omp for
      for (int i = 0; i < n; i++) {
        double fx = 0, fy = 0, fz = 0;
        for (int j = 0; j < n; j++) {
          double dx = body[j].x - body[i].x, dy = body[j].y - body[i].y, dz = body[j].z - body[i].z;
          double r2 = dx * dx + dy * dy + dz * dz + 0.01, f = body[j].mass / (r2 * std::sqrt(r2));
          fx += f * dx, fy += f * dy, fz += f * dz;
          *energy += f;
        }
        body[i].fx = fx, body[i].fy = fy, body[i].fz = fz;
      }
    }
  }
  std::printf("%g %g\n", body[1].fx, part[0].energy);
}
