/* A grid of ranks with ends in one direction and none in the other, and rows that are gathered: ./grid N */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size, rank, n = atoi(argv[1]), dims[2] = {0, 0}, periods[2] = {0, 1}, up, down, left, right;
    MPI_Comm grid;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &left, &right);
    const int rows = n / dims[0], columns = n / dims[1];
    double *u = calloc(n, sizeof(double)), *v = calloc((size_t)n * size, sizeof(double)), sum = 0.0;
    int *counts = malloc(size * sizeof(int)), *places = malloc(size * sizeof(int));
    for (int r = 0; r < size; r++)
        counts[r] = n, places[r] = r * n;
    MPI_Sendrecv(u, n, MPI_DOUBLE, down, 0, v, n, MPI_DOUBLE, up, 0, grid, MPI_STATUS_IGNORE);
    MPI_Sendrecv(u, rows, MPI_DOUBLE, left, 1, v, rows, MPI_DOUBLE, right, 1, grid, MPI_STATUS_IGNORE);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            sum += u[i] < v[j];
    MPI_Request request;
    MPI_Igatherv(u, n, MPI_DOUBLE, v, counts, places, MPI_DOUBLE, 0, grid, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return sum > 1e30;
}
