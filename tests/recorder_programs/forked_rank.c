/* Forks before MPI_Init, as daemons do: the child is the rank. */
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int status = 0;
  if (fork()) return wait(&status) < 0 || status;
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 5; i++) MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
