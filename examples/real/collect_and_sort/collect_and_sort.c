/* Workers measure; rank 0 receives all results and sorts them, while the others wait for its word. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 150000, ROUNDS = 12 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(double *out, unsigned seed)
{
    for (int i = 0; i < SAMPLES; i++) {
        double x = 0.0;
        for (int k = 0; k < 12; k++) {
            seed = seed * 1664525u + 1013904223u;
            x += (seed >> 8) / 16777216.0;
        }
        out[i] = x;
    }
}

static double find_median(double *values, int count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *own = malloc(SAMPLES * sizeof *own), *all = malloc(sizeof *all * SAMPLES * size), median = 0.0, sum = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        measure(own, 100 * round + rank);
#ifdef REPAIRED
        median = find_median(own, SAMPLES);
        MPI_Allreduce(MPI_IN_PLACE, &median, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        median /= size;
#else
        if (rank == 0) {
            for (int i = 0; i < SAMPLES; i++)
                all[i] = own[i];
            for (int r = 1; r < size; r++)
                MPI_Recv(all + r * SAMPLES, SAMPLES, MPI_DOUBLE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            median = find_median(all, SAMPLES * size);
        } else
            MPI_Send(own, SAMPLES, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        MPI_Bcast(&median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
#endif
        sum += median;
    }
    if (rank == 0)
        printf("median %f\n", sum / ROUNDS);
    MPI_Finalize();
}
