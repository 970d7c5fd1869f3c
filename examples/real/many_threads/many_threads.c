/* A hybrid program that starts four threads in each of two ranks on two cores, with many short loops. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000, STEPS = 3000 };

int main(int argc, char **argv)
{
    int rank, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *a = malloc(sizeof *a * N), sum = 0.0;
    for (int i = 0; i < N; i++)
        a[i] = i % 13;
    for (int step = 0; step < STEPS; step++) {
        double own = 0.0;
#pragma omp parallel for reduction(+ : own)
        for (int i = 0; i < N; i++) {
            a[i] = a[i] * 0.999 + 1.0 / (1.0 + a[i]) + 1.0 / (2.0 + a[i] * a[i]);
            own += a[i];
        }
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%f\n", sum);
    MPI_Finalize();
}
