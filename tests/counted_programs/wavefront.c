/* Blocks of columns that go from rank to rank, and even and odd neighbours that exchange: ./wavefront N BLOCK */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, n = atoi(argv[1]), block = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int low = rank * n / ranks, high = (rank + 1) * n / ranks;
    double *u = calloc((size_t)(high - low + 1) * n, sizeof(double)), *edge = calloc(n, sizeof(double));
    for (int first = 0; first < n; first += block) {
        int width = first + block < n ? block : n - first;
        if (rank > 0)
            MPI_Recv(edge + first, width, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = low; i < high; i++)
            for (int j = first; j < first + width; j++)
                u[(i - low) * n + j] = 0.5 * (u[(i - low) * n + j] + edge[j]);
        if (rank < ranks - 1)
            MPI_Send(u + first, width, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
    }
    if (rank % 2 == 0 && rank + 1 < ranks)
        MPI_Send(u, n, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD);
    else if (rank % 2 == 1)
        MPI_Recv(edge, n, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
