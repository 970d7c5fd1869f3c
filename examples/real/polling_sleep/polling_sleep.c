/* A consumer that looks for messages now and then and sleeps in between. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static double compute_block(int step)
{
    double x = 1.0 + step;
    for (int i = 0; i < 300000; i++)
        x = 0.5 * (x + 2.0 / x) + 1e-9 * i;
    return x;
}

int main(int argc, char **argv)
{
    int rank, there;
    double block = 0.0, sum = 0.0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 150; step++) {
        if (rank == 0) {
            block = compute_block(step);
            MPI_Send(&block, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&block, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
#ifndef REPAIRED
            MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            while (!there) {
                usleep(10000);
                MPI_Iprobe(0, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
            }
#endif
            MPI_Recv(&block, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += block;
            MPI_Send(&sum, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        }
    }
    if (rank == 1)
        printf("sum %f\n", sum);
    MPI_Finalize();
}
