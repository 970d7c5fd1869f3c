/* A simulation of queues that forces each line of its log to the disk. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static double simulate_queue(unsigned *seed, int events)
{
    double waiting = 0.0, length = 0.0;
    for (int i = 0; i < events; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        length += (*seed >> 9) / 8388608.0 - 0.52;
        length = length < 0.0 ? 0.0 : length;
        waiting += length;
    }
    return waiting / events;
}

int main(int argc, char **argv)
{
    int rank;
    char name[40];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "queue-%d.log", rank);
    FILE *log = fopen(name, "w");
    unsigned seed = 17u * rank + 1u;
    for (int day = 0; day < 40; day++) {
        double mean = simulate_queue(&seed, 700000), sum;
        fprintf(log, "day %d mean %f\n", day, mean);
#ifndef REPAIRED
        fflush(log);
        fsync(fileno(log));
#endif
        if (day % 10 == 0)
            MPI_Allreduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    fclose(log);
    MPI_Finalize();
}
