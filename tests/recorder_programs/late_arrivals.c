/* Rank 1 sends two messages late, while rank 0 waits for them in MPI_Waitsome; once more for MPI_Testall. */
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int rank, tag[2] = {1, 2}, which[2], done = 0;
  MPI_Request request[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 2; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      usleep(50000);
      for (int i = 0; i < 2; i++) MPI_Send(&tag[i], 1, MPI_INT, 0, tag[i], MPI_COMM_WORLD);
    } else if (rank == 0) {
      for (int i = 0; i < 2; i++) MPI_Irecv(&tag[i], 1, MPI_INT, 1, i + 1, MPI_COMM_WORLD, &request[i]);
      for (int left = 2, some; round == 0 && left > 0; left -= some)
        MPI_Waitsome(2, request, &some, which, MPI_STATUSES_IGNORE);
      for (done = round == 0; !done;) MPI_Testall(2, request, &done, MPI_STATUSES_IGNORE);
    }
  }
  return MPI_Finalize();
}
