/* Gaussian elimination without exchanges of rows: rows are dealt to the ranks in turn, the pivot row is broadcast. */
#include "common.h"

static double program(int n)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = n / size + (rank < n % size);
    double *a = numbers((size_t)rows * n), *pivot = numbers(n);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < n; c++) {
            int row = r * size + rank;
            a[(size_t)r * n + c] = row == c ? n : 1.0 / (1 + row + c);
        }
    began();
    for (int k = 0; k < n; k++) {
        double *source = k % size == rank ? a + (size_t)(k / size) * n : pivot;
        MPI_Bcast(source + k, n - k, MPI_DOUBLE, k % size, MPI_COMM_WORLD);
        for (int r = k / size + (rank <= k % size); r < rows; r++) {
            double *row = a + (size_t)r * n, factor = row[k] / source[k];
            for (int c = k; c < n; c++)
                row[c] -= factor * source[c];
        }
    }
    ended();
    double check = rows ? a[(size_t)(rows - 1) * n + n - 1] : 0.0;
    free(a);
    free(pivot);
    return check;
}
