/* Each rank has a child of fork compute for it. */
#include <mpi.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (!fork()) {
    while (clock() < CLOCKS_PER_SEC / 5) {
    }
    _exit(0);
  }
  wait(NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
