/* Times a piece of a program: the slowest rank counts, and of several times the fastest, against other jobs. */
#ifndef COMMON_H
#define COMMON_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 25 };

/* The program: fills its arrays, calls began(), works, calls ended(), frees; returns a number to check. */
static double program(int n);

static double started, seconds;

static inline void began(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    started = MPI_Wtime();
}

static inline void ended(void)
{
    double mine = MPI_Wtime() - started;
    MPI_Allreduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static inline double *numbers(size_t count)
{
    double *array = malloc((count ? count : 1) * sizeof *array);
    if (!array) {
        fprintf(stderr, "not enough memory for %zu numbers\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return array;
}

/* Prints "N P seconds check" on rank 0. */
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size, n = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (n < 2) {
        fprintf(stderr, "usage: %s N\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double check = 0.0, fastest = 0.0;
    for (int time = 0; time < TIMES; time++) {
        check = program(n);
        fastest = time == 0 || seconds < fastest ? seconds : fastest;
    }
    if (rank == 0)
        printf("%d %d %.9f %.6g\n", n, size, fastest, check);
    MPI_Finalize();
}
#endif
