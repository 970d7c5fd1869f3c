/* Broadcasts the same data again and again, then data that change, then the same few numbers. */
#include <mpi.h>
#include <stdlib.h>

enum { N = 4096, OFTEN = 20 };

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *data = malloc(N * sizeof *data), few[8] = {1, 2, 3};
  for (int i = 0; i < N; i++) data[i] = rank ? 0 : i;
  for (int t = 0; t < OFTEN; t++) MPI_Bcast(data, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* the same */
  for (int t = 0; t < OFTEN; t++) {
    for (int i = 0; i < N; i++) data[i] += 1;
    MPI_Bcast(data, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* changed */
  }
  for (int t = 0; t < OFTEN; t++) MPI_Bcast(few, 8, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* few */
  for (int i = 0; i < N; i++) data[i] = 0;
  for (int t = 0; t < OFTEN; t++) MPI_Bcast(data, N, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* all alike */
  MPI_Finalize();
  return 0;
}
