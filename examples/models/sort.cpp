// Keys sorted by buckets between ranks: counted, exchanged, counted again by digits on each rank.
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <vector>

int main(int argc, char **argv) {
  int rank, size, n = 30000;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<unsigned> key(n);
  std::vector<unsigned> sent(n);
  std::vector<unsigned> bucket(4 * n);
  std::vector<unsigned> sorted(4 * n);
  unsigned seed = rank + 5;
  for (int i = 0; i < n; i++) {
    seed = seed * 1103515245u + 12345u;
    key[i] = seed >> 8;
  }
  std::vector<int> count(size), begin(size), counted(size), from(size);
  for (int i = 0; i < n; i++) count[(long)key[i] * size >> 24]++;
  for (int q = 1; q < size; q++) begin[q] = begin[q - 1] + count[q - 1];
  std::vector<int> next(begin);
  for (int i = 0; i < n; i++) sent[next[(long)key[i] * size >> 24]++] = key[i];
  MPI_Alltoall(count.data(), 1, MPI_INT, counted.data(), 1, MPI_INT, MPI_COMM_WORLD);
  for (int q = 1; q < size; q++) from[q] = from[q - 1] + counted[q - 1];
  int mine = from[size - 1] + counted[size - 1];
  MPI_Alltoallv(sent.data(), count.data(), begin.data(), MPI_UNSIGNED, bucket.data(), counted.data(), from.data(),
                MPI_UNSIGNED, MPI_COMM_WORLD);
  unsigned *in = bucket.data(), *out = sorted.data();
  for (int shift = 0; shift < 24; shift += 8) {
    int place[257] = {0};
    for (int i = 0; i < mine; i++) place[(in[i] >> shift & 255) + 1]++;
    for (int digit = 0; digit < 256; digit++) place[digit + 1] += place[digit];
    for (int i = 0; i < mine; i++) out[place[in[i] >> shift & 255]++] = in[i];
    unsigned *other = in;
    in = out;
    out = other;
  }
  std::printf("%d %u\n", rank, in[0]);
  MPI_Finalize();
}
