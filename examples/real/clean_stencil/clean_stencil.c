/* Nothing is wrong with it: a balanced stencil with one exchange in a step. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLS = 1000, ROWS = 400, STEPS = 500 };

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = ROWS / size, up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    float *restrict a = calloc((size_t)(rows + 2) * COLS, sizeof *a), *restrict b = calloc((size_t)(rows + 2) * COLS, sizeof *b);
    a[COLS + COLS / 2] = 1.0f;
    for (int step = 0; step < STEPS; step++) {
        MPI_Request r[4];
        MPI_Irecv(a, COLS, MPI_FLOAT, up, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(a + (rows + 1) * COLS, COLS, MPI_FLOAT, down, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(a + COLS, COLS, MPI_FLOAT, up, 1, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(a + rows * COLS, COLS, MPI_FLOAT, down, 0, MPI_COMM_WORLD, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= rows; i++)
            for (int j = 1; j < COLS - 1; j++)
                b[i * COLS + j] = 0.2f * (a[i * COLS + j] + a[(i - 1) * COLS + j] + a[(i + 1) * COLS + j]
                    + a[i * COLS + j - 1] + a[i * COLS + j + 1]);
        for (int i = COLS; i < (rows + 1) * COLS; i++)
            a[i] = b[i];
    }
    if (rank == 0)
        printf("%g\n", a[COLS + 1]);
    MPI_Finalize();
}
