/* A wave equation whose field rank 0 collects and prints as text every few steps. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 60000, STEPS = 120, EVERY = 10 };

static void advance(const double *before, const double *now, double *next, int n)
{
    for (int i = 1; i <= n; i++)
        next[i] = 2.0 * now[i] - before[i] + 0.2 * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = CELLS / size;
    double *before = calloc(n + 2, sizeof(double)), *now = calloc(n + 2, sizeof(double));
    double *next = calloc(n + 2, sizeof(double)), *all = malloc(sizeof(double) * CELLS);
    for (int i = 1; i <= n; i++)
        before[i] = now[i] = sin(6.2831853 * (rank * n + i) / CELLS);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
#ifdef REPAIRED
    MPI_File out;
    MPI_File_open(MPI_COMM_WORLD, "wave.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &out);
#else
    FILE *out = rank == 0 ? fopen("wave.txt", "w") : NULL;
#endif
    for (int step = 0; step < STEPS; step++) {
        for (int sub = 0; sub < 10; sub++) {
            MPI_Sendrecv(now + 1, 1, MPI_DOUBLE, left, 0, now + n + 1, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            MPI_Sendrecv(now + n, 1, MPI_DOUBLE, right, 1, now, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            advance(before, now, next, n);
            double *old = before;
            before = now;
            now = next;
            next = old;
        }
        if (step % EVERY)
            continue;
#ifdef REPAIRED
        MPI_Offset at = ((MPI_Offset)(step / EVERY) * CELLS + rank * n) * sizeof(double);
        MPI_File_write_at_all(out, at, now + 1, n, MPI_DOUBLE, MPI_STATUS_IGNORE);
#else
        MPI_Gather(now + 1, n, MPI_DOUBLE, all, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int i = 0; rank == 0 && i < CELLS; i++)
            fprintf(out, "%d %.12e\n", i, all[i]);
#endif
    }
#ifdef REPAIRED
    MPI_File_close(&out);
#else
    if (out)
        fclose(out);
#endif
    MPI_Finalize();
}
