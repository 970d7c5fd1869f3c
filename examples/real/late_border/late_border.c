/* A sweep that sends its border only when all its inner work is done; the neighbour needs it at once. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4000, STEPS = 150 };

static double relax_inner(double *field, int sweeps)
{
    double change = 0.0;
    for (int s = 0; s < sweeps; s++)
        for (int i = 1; i < N - 1; i++) {
            double next = 0.25 * field[i - 1] + 0.5 * field[i] + 0.25 * field[i + 1];
            change += next - field[i];
            field[i] = next;
        }
    return change;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *field = malloc(N * sizeof *field), border[64], got[64], change = 0.0;
    for (int i = 0; i < N; i++)
        field[i] = (i * 37 + rank) % 101;
    for (int step = 0; step < STEPS; step++) {
        if (rank % 2 == 0) {
            for (int k = 0; k < 64; k++)
                border[k] = field[N - 64 + k] * 0.5;
#ifdef REPAIRED
            if (rank + 1 < size)
                MPI_Send(border, 64, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
            change += relax_inner(field, 300);
#else
            change += relax_inner(field, 300);
            if (rank + 1 < size)
                MPI_Send(border, 64, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
#endif
        } else {
            MPI_Recv(got, 64, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int k = 0; k < 64; k++)
                field[k] += 1e-3 * got[k];
            change += relax_inner(field, 300);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    double sum;
    MPI_Reduce(&change, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("change %g\n", sum);
    MPI_Finalize();
}
