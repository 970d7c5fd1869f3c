/* Exchanges among neighbours in topologies of all kinds. Prints how many messages they consist of. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 4, COUNT = 100, MOST = 4 };
static double out[MOST * COUNT], in[MOST * COUNT];
static long messages;

/* One exchange of each kind, with so many neighbours to send to. */
static void exchange(MPI_Comm comm, int targets) {
  int counts[MOST] = {1, 1, 1, 1}, offsets[MOST] = {0, 1, 2, 3};
  MPI_Aint bytes[MOST] = {0, 8, 16, 24};
  MPI_Datatype types[MOST] = {MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE, MPI_DOUBLE};
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Request q[2];
    MPI_Neighbor_alltoall(out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm);
    MPI_Neighbor_allgather(out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm);
    MPI_Neighbor_allgatherv(out, 1, MPI_DOUBLE, in, counts, offsets, MPI_DOUBLE, comm);
    MPI_Neighbor_alltoallv(out, counts, offsets, MPI_DOUBLE, in, counts, offsets, MPI_DOUBLE, comm);
    MPI_Neighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, comm);
    MPI_Ineighbor_alltoall(out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, comm, &q[0]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Ineighbor_alltoallv(out, counts, offsets, MPI_DOUBLE, in, counts, offsets, MPI_DOUBLE, comm, &q[0]);
    MPI_Ineighbor_allgatherv(out, 1, MPI_DOUBLE, in, counts, offsets, MPI_DOUBLE, comm, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    messages += 8 * targets;
  }
}

int main(int argc, char **argv) {
  int rank, ranks, ring = 1, line = 0, none[1] = {0};
  MPI_Comm made;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &ring, 0, &made);
  exchange(made, 2);
  MPI_Comm_free(&made);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &line, 0, &made); /* the ends have one neighbour */
  exchange(made, (rank > 0) + (rank < ranks - 1));
  MPI_Comm_free(&made);
  int others[MOST], count = 0; /* rank 0 hands on to all others, who answer nothing */
  for (int other = 1; other < ranks && count < MOST; other++) others[count++] = other;
  MPI_Comm turned;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &turned);
  MPI_Dist_graph_create_adjacent(turned, rank > 0 ? 1 : 0, none, MPI_UNWEIGHTED, rank > 0 ? 0 : count, others,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  exchange(made, rank > 0 ? 0 : count);
  MPI_Comm_free(&made);
  int ends[MOST] = {0}, edges[2 * MOST], filled = 0;
  for (int i = 0; i < ranks && i < MOST; i++) { /* a graph in which each rank has both ranks beside it */
    edges[filled++] = (i + 1) % ranks;
    edges[filled++] = (i + ranks - 1) % ranks;
    ends[i] = filled;
  }
  MPI_Graph_create(turned, ranks, ends, edges, 0, &made);
  exchange(made, 2);
  MPI_Comm_free(&made);
  MPI_Comm_free(&turned);
  long all = 0;
  MPI_Reduce(&messages, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld\n", all);
  MPI_Finalize();
  return 0;
}
