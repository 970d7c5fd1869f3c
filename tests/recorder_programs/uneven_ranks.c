/* Ranks with unequal parts, whom a barrier holds up in each of some steps. */
#include <mpi.h>

int main(int argc, char **argv) {
  int rank;
  volatile double sum = 0.0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < 10; step++) {
    for (long n = 0; n < 2000000L * (1 + rank); n++) sum += 1.0 / (1.0 + n);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return MPI_Finalize();
}
