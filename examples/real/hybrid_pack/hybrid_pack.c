/* Threads update a block; the first of them packs and checks the whole border layer alone. */
#include <math.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 120000, STEPS = 240 };

static void update_block(double *u)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        u[i] = 0.99 * u[i] + 0.01 * sqrt(u[i] * u[i] + i % 5) / (1.0 + u[i]);
}

static void pack_layer(const double *u, double *layer)
{
#ifdef REPAIRED
#pragma omp parallel for
#endif
    for (int i = 0; i < N; i++)
        layer[i] = exp(-u[i]) + log(1.0 + u[i]);
}

int main(int argc, char **argv)
{
    int rank, given;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *u = malloc(sizeof *u * N), *layer = malloc(sizeof *layer * N), sum = 0.0;
    for (int i = 0; i < N; i++)
        u[i] = i % 11;
    for (int step = 0; step < STEPS; step++) {
        update_block(u);
        pack_layer(u, layer);
        MPI_Allreduce(layer, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        u[0] += 1e-6 * sum;
    }
    if (rank == 0)
        printf("%f %f\n", u[N / 2], layer[N / 3]);
    MPI_Finalize();
}
