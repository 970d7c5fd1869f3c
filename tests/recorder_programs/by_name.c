/* Asks the MPI library, which it opens itself, for its functions by name, as bindings of other languages do. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

#define FIND(name) __typeof__(&name) call_##name = (__typeof__(&name))dlsym(library, #name)

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return puts(dlerror()), 1;
  FIND(MPI_Init);
  FIND(MPI_Barrier);
  FIND(MPI_Finalize);
#ifdef OPEN_MPI
  MPI_Comm world = (MPI_Comm)dlsym(library, "ompi_mpi_comm_world");
#else
  MPI_Comm world = MPI_COMM_WORLD;
#endif
  call_MPI_Init(&argc, &argv);
  for (int i = 0; i < 5; i++) call_MPI_Barrier(world);
  return call_MPI_Finalize();
}
