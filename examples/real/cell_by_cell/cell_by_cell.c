/* A halo exchange that sends each value of a column by itself. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 600, STEPS = 250 };
static double a[N + 2][N + 2], b[N + 2][N + 2];

static void smooth(void)
{
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++)
            b[i][j] = 0.2 * (a[i][j] + a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
    for (int i = 1; i <= N; i++)
        for (int j = 1; j <= N; j++)
            a[i][j] = b[i][j];
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 0; i <= N + 1; i++)
        for (int j = 0; j <= N + 1; j++)
            a[i][j] = i + j * rank;
#ifdef REPAIRED
    MPI_Datatype column;
    MPI_Type_vector(N, 1, N + 2, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
#endif
    for (int step = 0; step < STEPS; step++) {
        smooth();
#ifdef REPAIRED
        MPI_Sendrecv(&a[1][N], 1, column, right, 0, &a[1][0], 1, column, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&a[1][1], 1, column, left, 1, &a[1][N + 1], 1, column, right, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
#else
        MPI_Request requests[4 * N];
        int n = 0;
        for (int i = 1; i <= N; i++) {
            MPI_Irecv(&a[i][0], 1, MPI_DOUBLE, left, i, MPI_COMM_WORLD, &requests[n++]);
            MPI_Irecv(&a[i][N + 1], 1, MPI_DOUBLE, right, N + i, MPI_COMM_WORLD, &requests[n++]);
        }
        for (int i = 1; i <= N; i++) {
            MPI_Isend(&a[i][N], 1, MPI_DOUBLE, right, i, MPI_COMM_WORLD, &requests[n++]);
            MPI_Isend(&a[i][1], 1, MPI_DOUBLE, left, N + i, MPI_COMM_WORLD, &requests[n++]);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
#endif
    }
    if (rank == 0)
        printf("corner %f\n", a[1][1]);
    MPI_Finalize();
}
