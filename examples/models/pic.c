/* Particles in cells, on ranks in a ring: charge onto a grid, a field from it, particles pushed; halos to neighbours. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, size, cells = 4000, each = 6, steps = 3;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int n = cells * each + 500 * rank;
  double *position = malloc(sizeof *position * n);
  double *speed = malloc(sizeof *speed * n);
  double *charge = malloc(sizeof *charge * (cells + 2));
  double *field = malloc(sizeof *field * (cells + 2));
  unsigned seed = rank + 1;
  for (int k = 0; k < n; k++) {
    seed = seed * 1103515245u + 12345u;
    position[k] = (double)((seed >> 8) % (cells * 64)) / 64;
    speed[k] = 0.3;
  }
  int left = (rank + size - 1) % size, right = (rank + 1) % size;
  double total = 0;
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < cells + 2; i++) charge[i] = 0;
    for (int k = 0; k < n; k++) charge[(int)position[k] + 1] += 1;
    MPI_Sendrecv(&charge[cells], 2, MPI_DOUBLE, right, 1, &charge[0], 2, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 1; i <= cells; i++) field[i] = 0.5 * (charge[i + 1] - charge[i - 1]);
    double mine = 0;
    for (int k = 0; k < n; k++) {
      int i = (int)position[k] + 1;
      speed[k] += 1e-3 * field[i];
      position[k] += speed[k] * 0.01;
      if (position[k] >= cells) position[k] -= cells;
      mine += speed[k];
    }
    MPI_Allreduce(&mine, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%g\n", total);
  MPI_Finalize();
  return 0;
}
