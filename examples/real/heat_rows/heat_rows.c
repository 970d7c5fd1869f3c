/* Explicit heat equation on rows; what is left over by the division goes to the last rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLS = 1500, ROWS = 599, STEPS = 1200 };

static void update_rows(const double *old, double *new, int rows)
{
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < COLS - 1; j++) {
            double here = old[i * COLS + j];
            new[i * COLS + j] = here + 0.1 * (old[(i - 1) * COLS + j] + old[(i + 1) * COLS + j]
                + old[i * COLS + j - 1] + old[i * COLS + j + 1] - 4.0 * here);
        }
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef REPAIRED
    int rows = ROWS / size + (rank < ROWS % size);
#else
    int block = ROWS / size / 100 * 100;
    int rows = rank < size - 1 ? block : ROWS - (size - 1) * block;
#endif
    double *old = calloc((size_t)(rows + 2) * COLS, sizeof *old);
    double *new = calloc((size_t)(rows + 2) * COLS, sizeof *new);
    if (rank == 0)
        for (int j = 0; j < COLS; j++)
            old[j] = new[j] = 100.0;
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int step = 0; step < STEPS; step++) {
        MPI_Sendrecv(old + COLS, COLS, MPI_DOUBLE, up, 0, old + (rows + 1) * COLS, COLS, MPI_DOUBLE, down, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(old + rows * COLS, COLS, MPI_DOUBLE, down, 1, old, COLS, MPI_DOUBLE, up, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        update_rows(old, new, rows);
        double *swap = old;
        old = new;
        new = swap;
    }
    double own = 0.0, sum;
    for (int i = COLS; i < (rows + 1) * COLS; i++)
        own += old[i];
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("heat %.6f\n", sum);
    MPI_Finalize();
}
