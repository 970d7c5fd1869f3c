/* A line of ranks that exchange halos without waiting, then hand their rows to the first: ./line N STEPS */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int size, rank, n = atoi(argv[1]), steps = atoi(argv[2]), dims[1] = {0}, periods[1] = {0}, left, right;
    MPI_Comm line;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 1, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &line);
    MPI_Comm_rank(line, &rank);
    MPI_Cart_shift(line, 0, 1, &left, &right);
    int local = n / size + (rank < n % size ? 1 : 0);
    double *u = calloc((size_t)(local + 2) * n, sizeof(double)), *v = calloc((size_t)(local + 2) * n, sizeof(double));
    MPI_Request request[4];
    for (int t = 0; t < steps; t++) {
        double change = 0, all;
        MPI_Irecv(u, n, MPI_DOUBLE, left, 0, line, &request[0]);
        MPI_Irecv(u + (local + 1) * n, n, MPI_DOUBLE, right, 1, line, &request[1]);
        MPI_Isend(u + n, n, MPI_DOUBLE, left, 1, line, &request[2]);
        MPI_Isend(u + local * n, n, MPI_DOUBLE, right, 0, line, &request[3]);
        MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= local; i++)
            for (int j = 1; j < n - 1; j++) {
                v[i * n + j] = 0.25 * (u[(i - 1) * n + j] + u[(i + 1) * n + j] + u[i * n + j - 1] + u[i * n + j + 1]);
                change += v[i * n + j];
            }
        memcpy(u + n, v + n, sizeof(double) * local * n);
        if (t % 5 == 4)
            MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, line);
    }
    if (rank == 0)
        for (int r = 1; r < size; r++)
            MPI_Recv(v, n, MPI_DOUBLE, r, 7, line, MPI_STATUS_IGNORE);
    else
        MPI_Send(u + n, n, MPI_DOUBLE, 0, 7, line);
    MPI_Finalize();
    return 0;
}
