/* C = A B: each rank has a block of rows of A and C, and of B; the blocks of B go round. */
#include "common.h"

static double program(int n)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n -= n % size;
    int rows = n / size;
    size_t block = (size_t)rows * n;
    double *a = numbers(block), *b = numbers(block), *c = numbers(block);
    for (size_t i = 0; i < block; i++) {
        a[i] = 1.0 / (1 + i % 7);
        b[i] = 1.0 / (1 + i % 5);
        c[i] = 0.0;
    }
    began();
    for (int step = 0; step < size; step++) {
        int first = (rank + step) % size * rows;
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < rows; k++) {
                double factor = a[(size_t)i * n + first + k];
                for (int j = 0; j < n; j++)
                    c[(size_t)i * n + j] += factor * b[(size_t)k * n + j];
            }
        if (step + 1 < size)
            MPI_Sendrecv_replace(b, block, MPI_DOUBLE, (rank + size - 1) % size, 0, (rank + 1) % size, 0,
                                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    ended();
    double check = c[block - 1];
    free(a);
    free(b);
    free(c);
    return check;
}
