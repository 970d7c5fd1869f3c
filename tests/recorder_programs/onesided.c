/* Partitioned messages, one-sided epochs of every kind, and files by MPI. Prints how many messages were sent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, PARTS = 4, COUNT = 100 };
static int rank, ranks, right, left;

static int partitioned(void) {
#if MPI_VERSION >= 4 || defined(HAVE_PARTITIONED)
  static double out[PARTS * COUNT], in[PARTS * COUNT];
  MPI_Request q[2];
  MPI_Psend_init(out, PARTS, COUNT, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
  MPI_Precv_init(in, PARTS, COUNT, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Startall(2, q);
    for (int p = 0; p < PARTS; p++) MPI_Pready(p, q[0]);
    for (int p = 0, there = 0; p < PARTS; p += there) MPI_Parrived(q[1], p, &there);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&q[0]);
  MPI_Request_free(&q[1]);
  return ROUNDS;
#else
  return 0;
#endif
}

static void epochs(void) {
  int *memory, value = rank, old = 0, one = 1;
  MPI_Win window;
  MPI_Group world, to, from;
  MPI_Win_allocate(64 * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &right, &to);
  MPI_Group_incl(world, 1, &left, &from);
  for (int i = 0; i < ROUNDS; i++) {
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Get(&old, 1, MPI_INT, right, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
    MPI_Accumulate(&one, 1, MPI_INT, right, 1, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_flush(right, window);
    MPI_Fetch_and_op(&one, &old, MPI_INT, right, 2, MPI_SUM, window);
    MPI_Win_unlock(right, window);
    MPI_Win_lock_all(0, window);
    MPI_Request q;
    MPI_Rput(&value, 1, MPI_INT, right, 3, 1, MPI_INT, window, &q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window);
  }
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&world);
  MPI_Win_free(&window);
}

static void files(void) {
  static int data[COUNT];
  MPI_File file;
  MPI_Request q;
  MPI_File_open(MPI_COMM_WORLD, "onesided.out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_Offset own = (MPI_Offset)sizeof data * rank;
  MPI_File_write_at_all(file, own, data, COUNT, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_iwrite_at(file, own, data, COUNT, MPI_INT, &q);
  MPI_Wait(&q, MPI_STATUS_IGNORE);
  MPI_File_sync(file);
  MPI_File_seek(file, own, MPI_SEEK_SET);
  MPI_File_read(file, data, COUNT, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, own, data, COUNT, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  right = (rank + 1) % ranks;
  left = (rank + ranks - 1) % ranks;
  int messages = partitioned();
  epochs();
  files();
  MPI_Finalize();
  if (!rank) printf("%d\n", messages * ranks);
  return 0;
}
