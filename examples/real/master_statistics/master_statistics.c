/* Workers and a master that computes statistics of each result while its worker waits for the next task. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { TASKS = 4000, LENGTH = 4000 };

static void solve_task(int task, double *out)
{
    for (int i = 0; i < LENGTH; i++) {
        double x = 1.0 + task + i;
        for (int k = 0; k < 40; k++)
            x = 0.5 * (x + (2.0 + i) / x);
        out[i] = x;
    }
}

static double find_statistics(const double *values)
{
    double sum = 0.0;
    for (int i = 0; i < LENGTH; i++)
        sum += log(1.0 + values[i]) * sin(values[i]) + cbrt(values[i]) + atan(values[i]) + exp(-1e-3 * values[i]);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size;
    double values[LENGTH], total = 0.0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        int next = 0;
        for (int done = 0; done < TASKS + size - 1; done++) {
            MPI_Status status;
            MPI_Recv(values, LENGTH, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
#ifndef REPAIRED
            if (done >= size - 1)
                total += find_statistics(values);
#endif
            int task = next < TASKS ? next++ : -1;
            MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
#ifdef REPAIRED
            if (done >= size - 1)
                total += find_statistics(values);
#endif
        }
        printf("%f\n", total);
    } else {
        int task;
        for (int i = 0; i < LENGTH; i++)
            values[i] = 0.0;
        while (1) {
            MPI_Send(values, LENGTH, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
            MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (task < 0)
                break;
            solve_task(task, values);
        }
    }
    MPI_Finalize();
}
