/* Makes and frees more communicators than it has at a time, in another order on each rank where it may; prints how many
   messages it sent. */
#include <mpi.h>
#include <stdio.h>

#define LIVE 8
#define ROUNDS 100
#define IN_ALL 66000 /* more than there are numbers */

int main(int argc, char **argv) {
  int rank, ranks, sent = 0;
  MPI_Comm live[LIVE];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < LIVE; i++) MPI_Comm_dup(MPI_COMM_WORLD, &live[i]);
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Comm *one = &live[round % LIVE];
    MPI_Comm_free(one);
    MPI_Comm_split(MPI_COMM_WORLD, 0, round % 2 ? -rank : rank, one);
    int own, got;
    MPI_Comm_rank(*one, &own);
    MPI_Sendrecv(&rank, 1, MPI_INT, (own + 1) % ranks, 0, &got, 1, MPI_INT, (own + ranks - 1) % ranks, 0, *one,
                 MPI_STATUS_IGNORE);
    sent++;
  }
  for (int i = 0; i < IN_ALL; i++) {
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_free(&own);
  }
  MPI_Comm two[2];
  MPI_Request requests[2];
  for (int i = 0; i < 2; i++) MPI_Comm_idup(MPI_COMM_WORLD, &two[i], &requests[i]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2; i++) { /* ranks use them in different orders */
    MPI_Comm comm = two[(i + rank) % 2];
    int got;
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % ranks, 10 + (i + rank) % 2, comm, &requests[i]);
    sent++;
    if (i) {
      MPI_Recv(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 10, two[0], MPI_STATUS_IGNORE);
      MPI_Recv(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 11, two[1], MPI_STATUS_IGNORE);
    }
  }
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
#if MPI_VERSION >= 4
  int got;
  MPI_Isendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 7, &got, 1, MPI_INT, (rank + ranks - 1) % ranks, 7,
                MPI_COMM_WORLD, requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  sent++;
#endif
  if (!rank) printf("%d\n", sent * ranks);
  return MPI_Finalize();
}
