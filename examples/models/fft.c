/* Transforms of the rows of a matrix, radix two, and its transposition between ranks: a transform in two dimensions. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void transform(double *re, double *im, const double *cosine, const double *sine, int n) {
  for (int i = 0, j = 0; i < n; i++) {
    if (i < j) {
      double one = re[i], other = im[i];
      re[i] = re[j], im[i] = im[j];
      re[j] = one, im[j] = other;
    }
    int bit = n / 2;
    for (; bit && (j & bit); bit /= 2) j -= bit;
    j += bit;
  }
  for (int half = 1; half < n; half *= 2)
    for (int begin = 0; begin < n; begin += 2 * half)
      for (int k = 0; k < half; k++) {
        int at = begin + k, to = at + half, w = k * (n / 2 / half);
        double x = re[to] * cosine[w] - im[to] * sine[w], y = re[to] * sine[w] + im[to] * cosine[w];
        re[to] = re[at] - x, im[to] = im[at] - y;
        re[at] += x, im[at] += y;
      }
}

int main(int argc, char **argv) {
  int rank, size, n = 128;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int rows = n / size, block = rows * rows;
  double *re = malloc(sizeof *re * rows * n);
  double *im = malloc(sizeof *im * rows * n);
  double *packed = malloc(sizeof *packed * rows * n);
  double *received = malloc(sizeof *received * rows * n);
  double *cosine = malloc(sizeof *cosine * n);
  double *sine = malloc(sizeof *sine * n);
  for (int k = 0; k < n; k++) cosine[k] = cos(2 * M_PI * k / n), sine[k] = sin(2 * M_PI * k / n);
  for (int i = 0; i < rows * n; i++) re[i] = (i + rank) % 17, im[i] = 0;
  for (int pass = 0; pass < 4; pass++) {
    for (int i = 0; i < rows; i++) transform(re + i * n, im + i * n, cosine, sine, n);
    double *both[2] = {re, im};
    for (int part = 0; part < 2; part++) {
      double *data = both[part];
      for (int q = 0; q < size; q++)
        for (int i = 0; i < rows; i++)
          for (int j = 0; j < rows; j++) packed[q * block + j * rows + i] = data[i * n + q * rows + j];
      MPI_Alltoall(packed, block, MPI_DOUBLE, received, block, MPI_DOUBLE, MPI_COMM_WORLD);
      for (int q = 0; q < size; q++)
        for (int i = 0; i < rows; i++)
          for (int j = 0; j < rows; j++) data[i * n + q * rows + j] = received[q * block + i * rows + j];
    }
  }
  if (rank == 0) printf("%g\n", re[1]);
  MPI_Finalize();
  return 0;
}
