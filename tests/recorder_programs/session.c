/* A program of MPI 4 that begins with a session and never calls MPI_Init. */
#include <mpi.h>

int main(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  for (int i = 0; i < 5; i++) MPI_Barrier(comm);
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  return MPI_Session_finalize(&session);
}
