/* Rank 0 sends a message of so many bytes, and then says by a file that it has; rank 1 receives it only after that, or
   gives up after a minute. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size = argc > 2 ? atoi(argv[2]) : 0;
    char *buffer = calloc((size_t)size, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        fclose(fopen(argv[1], "w"));
    } else {
        for (int tries = 0; access(argv[1], F_OK) != 0; tries++) {
            if (tries == 6000)
                MPI_Abort(MPI_COMM_WORLD, 3);
            usleep(10000);
        }
        MPI_Recv(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    free(buffer);
}
