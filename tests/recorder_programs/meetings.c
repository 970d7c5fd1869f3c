/* Ranks of unequal work that meet in fences at two places and where they make communicators, of all and of some. */
#include <mpi.h>
#include <unistd.h>

enum { ROUNDS = 5, LATE_US = 20000 };

int main(int argc, char **argv) {
  int rank, *memory;
  MPI_Comm made, some;
  MPI_Win window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank < 3 ? 0 : MPI_UNDEFINED, rank, &some);
  if (rank < 3) {
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, some, &memory, &window);
    MPI_Win_fence(0, window);
  }
  for (int i = 0; i < ROUNDS; i++) {
    if (rank < 2) usleep(LATE_US); /* the others wait for them */
    if (rank < 3) MPI_Win_fence(0, window);
    if (rank < 2) usleep(LATE_US);
    if (rank < 3) {
      MPI_Comm_dup(some, &made);
      MPI_Comm_free(&made);
    }
    if (rank == 3) usleep(LATE_US);
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_free(&made);
  }
  if (rank < 3) {
    MPI_Win_free(&window);
    MPI_Comm_free(&some);
  }
  MPI_Finalize();
  return 0;
}
