/* Two kernels that are long on other ranks, with a barrier between that orders nothing. */
#include <mpi.h>
#include <stdio.h>

static double run_kernel(double x, int count)
{
    for (int i = 0; i < count; i++)
        x = x * 0.999999 + 1e-6 / (1.0 + x);
    return x;
}

int main(int argc, char **argv)
{
    int rank, size;
    double x = 1.0, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; step < 240; step++) {
        x = run_kernel(x, rank % 2 ? 200000 : 500000);
#ifndef REPAIRED
        MPI_Barrier(MPI_COMM_WORLD);
#endif
        x = run_kernel(x, rank % 2 ? 500000 : 200000);
        MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        x = sum / size;
    }
    if (rank == 0)
        printf("x %f\n", x);
    MPI_Finalize();
}
