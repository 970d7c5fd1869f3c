/* Each rank fetches a table of its neighbour, one number at a time, in steps. Prints how many. */
#include <mpi.h>
#include <stdio.h>

enum { STEPS = 5, COUNT = 2000 };

int main(int argc, char **argv) {
  int rank, ranks;
  double *table, sum = 0.0;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Win_allocate(COUNT * (MPI_Aint)sizeof *table, sizeof *table, MPI_INFO_NULL, MPI_COMM_WORLD, &table, &window);
  for (int i = 0; i < COUNT; i++) table[i] = rank + i;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < COUNT; i++) {
      double value;
      MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % ranks, 0, window);
      MPI_Get(&value, 1, MPI_DOUBLE, (rank + 1) % ranks, i, 1, MPI_DOUBLE, window);
      MPI_Win_unlock((rank + 1) % ranks, window);
      sum += value;
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%d %s\n", STEPS * COUNT, sum > 0 ? "" : "nothing");
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
