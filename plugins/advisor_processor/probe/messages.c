/* Latency and bandwidth between two processes: "nanoseconds bytes" per sample, one way, half of a round trip; with 0
   bytes the time of a barrier. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double ping(char *data, int bytes, int rank, int rounds)
{
    double begin = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            MPI_Send(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(data, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - begin) * 1e9 / (2.0 * rounds);
}

static double barrier(int rounds)
{
    double begin = MPI_Wtime();
    for (int i = 0; i < rounds; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) * 1e9 / rounds;
}

int main(int count, char **words)
{
    int rank, samples = 15;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int sizes[] = {8, 1 << 22}, rounds[] = {500, 4};
    char *data = calloc(1, sizes[1]);
    for (int s = 0; s < 2; s++) {
        ping(data, sizes[s], rank, rounds[s]);
        for (int i = 0; i < samples; i++) {
            double time = ping(data, sizes[s], rank, rounds[s]);
            if (rank == 0)
                printf("%.9g %d\n", time, sizes[s]);
        }
    }
    barrier(500);
    for (int i = 0; i < samples; i++) {
        double time = barrier(500);
        if (rank == 0)
            printf("%.9g 0\n", time);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
