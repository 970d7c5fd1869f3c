/* One rank is killed in mid-run; with an argument nobody is, and there are so many rounds. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int rank;
  double own = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int rounds = argc > 1 ? atoi(argv[1]) : 10000;
  for (int i = 0; i < rounds; i++) {
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (argc < 2 && rank == 1 && i == 5000) kill(getpid(), SIGKILL);
  }
  MPI_Finalize();
  return 0;
}
