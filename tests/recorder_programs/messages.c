/* Every way to complete a message that MPI has, a known number of times. Prints how many messages were sent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 20, LARGE = 20000 };
static int rank, ranks, right, left;
static long sent;
static MPI_Comm ring;

static void start(MPI_Request *q, int *in, const int *out, int count, int tag) {
  MPI_Irecv(in, count, MPI_INT, left, tag, ring, &q[0]);
  MPI_Isend(out, count, MPI_INT, right, tag, ring, &q[1]);
  sent++;
}

static void completions(int *in, const int *out, int count) {
  MPI_Request q[2];
  MPI_Status both[2], status;
  int index, flag, some, indices[2], done;
  start(q, in, out, count, 1);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  start(q, in, out, count, 2);
  MPI_Waitall(2, q, both);
  start(q, in, out, count, 3);
  MPI_Wait(&q[1], MPI_STATUS_IGNORE);
  MPI_Wait(&q[0], &status);
  start(q, in, out, count, 4);
  for (done = 0; done < 2; done++) MPI_Waitany(2, q, &index, MPI_STATUS_IGNORE);
  start(q, in, out, count, 5);
  for (done = 0; done < 2; done += some) MPI_Waitsome(2, q, &some, indices, MPI_STATUSES_IGNORE);
  start(q, in, out, count, 6);
  for (done = 0; done < 2;) {
    MPI_Test(&q[done], &flag, MPI_STATUS_IGNORE);
    done += flag;
  }
  start(q, in, out, count, 7);
  for (flag = 0; !flag;) MPI_Testall(2, q, &flag, MPI_STATUSES_IGNORE);
  start(q, in, out, count, 8);
  for (done = 0; done < 2;) {
    MPI_Testany(2, q, &index, &flag, MPI_STATUS_IGNORE);
    done += flag && index != MPI_UNDEFINED;
  }
  start(q, in, out, count, 9);
  for (done = 0; done < 2; done += some > 0 ? some : 0) MPI_Testsome(2, q, &some, indices, MPI_STATUSES_IGNORE);
}

static void others(int *in, int *out, int count) {
  MPI_Request q[2], gone;
  MPI_Message message;
  MPI_Status status;
  int flag = 0, size = count * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
  void *buffer = malloc((size_t)size);
  MPI_Sendrecv(out, count, MPI_INT, right, 20, in, count, MPI_INT, MPI_ANY_SOURCE, 20, ring, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(out, count, MPI_INT, right, 21, left, 21, ring, &status);
  MPI_Sendrecv(out, count, MPI_INT, MPI_PROC_NULL, 22, in, count, MPI_INT, MPI_PROC_NULL, 22, ring, &status);
  MPI_Buffer_attach(buffer, size);
  MPI_Bsend(out, count, MPI_INT, right, 23, ring);
  MPI_Recv(in, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring, MPI_STATUS_IGNORE);
  MPI_Buffer_detach(&buffer, &size);
  MPI_Issend(out, count, MPI_INT, right, 24, ring, &q[0]);
  MPI_Mprobe(left, 24, ring, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(in, count, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&q[0], MPI_STATUS_IGNORE);
  MPI_Isend(out, count, MPI_INT, right, 25, ring, &q[0]);
  while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 25, ring, &flag, &message, &status);
  MPI_Imrecv(in, count, MPI_INT, &message, &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  MPI_Isend(out, count, MPI_INT, right, 26, ring, &gone);
  MPI_Request_free(&gone);
  MPI_Probe(left, 26, ring, &status);
  MPI_Recv(in, count, MPI_INT, left, 26, ring, MPI_STATUS_IGNORE);
  MPI_Irecv(in, count, MPI_INT, left, 99, ring, &q[0]); /* nobody sends this */
  MPI_Cancel(&q[0]);
  MPI_Wait(&q[0], &status);
  MPI_Irecv(in, count, MPI_INT, MPI_PROC_NULL, 30, ring, &q[0]);
  MPI_Isend(out, count, MPI_INT, MPI_PROC_NULL, 30, ring, &q[1]);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  free(buffer);
  sent += 6;
}

static void persistent(int *in, int *out, int count) {
  MPI_Request q[2];
  MPI_Recv_init(in, count, MPI_INT, left, 40, ring, &q[0]);
  MPI_Send_init(out, count, MPI_INT, right, 40, ring, &q[1]);
  for (int i = 0; i < 3; i++, sent++) {
    MPI_Startall(2, q);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2; i++, sent++) {
    MPI_Start(&q[0]);
    MPI_Start(&q[1]);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Wait(&q[1], MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&q[0]);
  MPI_Request_free(&q[1]);
}

static void collectives(int *in, int *out) {
  int *counts = malloc(sizeof(int) * (size_t)ranks), *places = malloc(sizeof(int) * (size_t)ranks);
  MPI_Request q;
  for (int i = 0; i < ranks; i++) counts[i] = 10, places[i] = 10 * i;
  MPI_Barrier(ring);
  MPI_Bcast(in, 10, MPI_INT, ranks - 1, ring);
  MPI_Reduce(out, in, 10, MPI_INT, MPI_SUM, 0, ring);
  MPI_Allreduce(out, in, 10, MPI_INT, MPI_SUM, ring);
  MPI_Allreduce(MPI_IN_PLACE, in, 10, MPI_INT, MPI_SUM, ring);
  MPI_Gather(out, 10, MPI_INT, in, 10, MPI_INT, 0, ring);
  MPI_Gatherv(out, 10, MPI_INT, in, counts, places, MPI_INT, 0, ring);
  MPI_Scatter(out, 10, MPI_INT, in, 10, MPI_INT, 0, ring);
  MPI_Scatterv(out, counts, places, MPI_INT, in, 10, MPI_INT, 0, ring);
  MPI_Allgather(out, 10, MPI_INT, in, 10, MPI_INT, ring);
  MPI_Allgatherv(out, 10, MPI_INT, in, counts, places, MPI_INT, ring);
  MPI_Alltoall(out, 10, MPI_INT, in, 10, MPI_INT, ring);
  MPI_Alltoallv(out, counts, places, MPI_INT, in, counts, places, MPI_INT, ring);
  MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, ring);
  MPI_Reduce_scatter_block(out, in, 10, MPI_INT, MPI_SUM, ring);
  MPI_Scan(out, in, 10, MPI_INT, MPI_SUM, ring);
  MPI_Exscan(out, in, 10, MPI_INT, MPI_SUM, ring);
  MPI_Ibarrier(ring, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_Iallreduce(out, in, 10, MPI_INT, MPI_SUM, ring, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  free(counts);
  free(places);
}

static void beyond(int *in, int *out) {
  MPI_Win window;
  MPI_File file;
  MPI_Comm half, grid, bridge, leaders;
  int periods = 1, dims = ranks, *memory;
  char name[] = "recorder-test.out";
  MPI_Win_allocate(40 * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, ring, &memory, &window);
  MPI_Win_fence(0, window);
  MPI_Put(out, 10, MPI_INT, right, 0, 10, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_File_open(ring, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, rank * 4000, out, 1000, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Cart_create(ring, 1, &dims, &periods, 0, &grid);
  MPI_Neighbor_allgather(out, 5, MPI_INT, in, 5, MPI_INT, grid);
  sent += 2;
  MPI_Comm_free(&grid);
  MPI_Comm_split(ring, rank % 2, rank, &half);
  MPI_Allreduce(out, in, 10, MPI_INT, MPI_SUM, half);
  MPI_Intercomm_create(half, 0, ring, rank % 2 ? 0 : 1, 50, &bridge);
  if (rank < ranks / 2 * 2) { /* each rank of one half has a partner of the same number in the other */
    MPI_Sendrecv(out, 5, MPI_INT, rank / 2, 51, in, 5, MPI_INT, rank / 2, 51, bridge, MPI_STATUS_IGNORE);
    sent++;
  }
  MPI_Comm_dup(half, &leaders);
  MPI_Allreduce(out, in, 10, MPI_INT, MPI_SUM, leaders);
  MPI_Comm_free(&leaders);
  MPI_Comm_free(&bridge);
  MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
  long all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &ring);
  MPI_Comm_rank(ring, &rank);
  MPI_Comm_size(ring, &ranks);
  right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  int *in = calloc((size_t)LARGE + 10 * (size_t)ranks, sizeof *in), *out = calloc((size_t)LARGE + 10 * (size_t)ranks, sizeof *out);
  for (int i = 0; i < ROUNDS; i++) {
    completions(in, out, i % 2 ? LARGE : 4);
    others(in, out, i % 2 ? LARGE : 4);
    persistent(in, out, i % 2 ? LARGE : 4);
    collectives(in, out);
  }
  beyond(in, out);
  MPI_Reduce(&sent, &all, 1, MPI_LONG, MPI_SUM, 0, ring);
  if (!rank) printf("%ld messages\n", all);
  free(in);
  free(out);
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return 0;
}
