/* Heat in a plate cut into strips, one for each rank: a stencil, a halo of messages, a reduction each iteration.

   heat [COLUMNS [ROWS [ITERATIONS]]]    rows of each rank */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

double sweep(int rows, int columns, const double *restrict u, double *restrict v)
{
    double change = 0.0;
    for (int j = 1; j <= rows; j++)
        for (int i = 1; i < columns - 1; i++) {
            double now = u[j * columns + i];
            double next = 0.25 * (u[j * columns + i - 1] + u[j * columns + i + 1] + u[(j - 1) * columns + i] +
                                  u[(j + 1) * columns + i]);
            v[j * columns + i] = next;
            change += (next - now) * (next - now);
        }
    return change;
}

static void exchange(int rows, int columns, double *u, int rank, int ranks)
{
    MPI_Request requests[4];
    int count = 0;
    if (rank > 0) {
        MPI_Irecv(u, columns, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(u + columns, columns, MPI_DOUBLE, rank - 1, 1, MPI_COMM_WORLD, &requests[count++]);
    }
    if (rank < ranks - 1) {
        MPI_Irecv(u + (rows + 1) * columns, columns, MPI_DOUBLE, rank + 1, 1, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(u + rows * columns, columns, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD, &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

int main(int count, char **words)
{
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int columns = count > 1 ? atoi(words[1]) : 512, rows = count > 2 ? atoi(words[2]) : 128;
    int iterations = count > 3 ? atoi(words[3]) : 2000;
    double *u = calloc((size_t)columns * (rows + 2), sizeof(double));
    double *v = calloc((size_t)columns * (rows + 2), sizeof(double));
    double change = 0.0, all = 0.0;
    for (int i = 0; i < columns && rank == 0; i++)
        u[i] = v[i] = 1.0;
    for (int t = 0; t < iterations; t++) {
        exchange(rows, columns, u, rank, ranks);
        change = sweep(rows, columns, u, v);
        MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double *other = u;
        u = v;
        v = other;
    }
    if (rank == 0)
        printf("%.12g\n", sqrt(all));
    free(u);
    free(v);
    MPI_Finalize();
    return 0;
}
