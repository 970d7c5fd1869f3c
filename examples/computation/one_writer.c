/* Every step the first rank gathers all data and writes them, number by number, while the others wait. Repaired, each
   rank writes its own part in one piece. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PART = 40000 };

static void compute(double *part, int step)
{
    for (int k = 0; k < 20; k++)
        for (int i = 0; i < PART; i++)
            part[i] = sqrt(part[i] + step + k);
}

int main(int argc, char **argv)
{
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 40;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *part = calloc(PART, sizeof *part), *all = calloc((size_t)PART * size, sizeof *all);
#ifdef REPAIRED
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "one_writer.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
#else
    FILE *file = rank == 0 ? fopen("one_writer.out", "w") : NULL;
#endif
    for (int step = 0; step < steps; step++) {
        compute(part, step);
#ifdef REPAIRED
        MPI_Offset at = ((MPI_Offset)step * size + rank) * PART * (MPI_Offset)sizeof *part;
        MPI_File_write_at(file, at, part, PART, MPI_DOUBLE, MPI_STATUS_IGNORE);
#else
        MPI_Gather(part, PART, MPI_DOUBLE, all, PART, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int i = 0; rank == 0 && i < PART * size; i++)
            fprintf(file, "%.17g\n", all[i]);
#endif
    }
#ifdef REPAIRED
    MPI_File_close(&file);
#else
    if (rank == 0)
        fclose(file);
#endif
    if (rank == 0)
        printf("%.10g\n", part[PART / 2]);
    MPI_Finalize();
    return 0;
}
