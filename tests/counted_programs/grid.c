/* A grid of ranks, some of which have no neighbour, and rows of different lengths gathered: ./grid N */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size, rank, n = atoi(argv[1]), dims[2] = {0, 0}, periods[2] = {0, 0}, up, down;
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    double *u = calloc(n, sizeof(double)), *v = calloc((size_t)n * size, sizeof(double));
    int *counts = malloc(size * sizeof(int)), *places = malloc(size * sizeof(int));
    for (int r = 0; r < size; r++)
        counts[r] = n, places[r] = r * n;
    MPI_Sendrecv(u, n, MPI_DOUBLE, down, 0, v, n, MPI_DOUBLE, up, 0, grid, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_Igatherv(u, n, MPI_DOUBLE, v, counts, places, MPI_DOUBLE, 0, grid, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
