/* A rod in equal parts, neighbours exchange their ends every step. The fault is in the launch: eight ranks where there
   are two cores; repaired, one rank for each core. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, n = argc > 1 ? atoi(argv[1]) : 20000, steps = argc > 2 ? atoi(argv[2]) : 500;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int mine = n / size, left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    double *u = calloc(mine + 2, sizeof *u), *v = calloc(mine + 2, sizeof *v), largest = 0.0;
    if (rank == 0)
        u[0] = v[0] = 1.0;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(&u[mine], 1, MPI_DOUBLE, right, 0, &u[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 1, &u[mine + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        double change = 0.0;
        for (int i = 1; i <= mine; i++) {
            v[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1]);
            double d = v[i] - u[i];
            change = d > change ? d : change;
        }
        MPI_Allreduce(&change, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        double *swap = u;
        u = v;
        v = swap;
    }
    if (rank == 0)
        printf("%.10g\n", largest);
    MPI_Finalize();
    return 0;
}
