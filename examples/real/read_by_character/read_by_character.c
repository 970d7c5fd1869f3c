/* All ranks read the same table, a few bytes at a time, without a buffer. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        FILE *out = fopen("table.txt", "w");
        for (int i = 0; i < 60000; i++)
            fprintf(out, "%09d\n", i * 7);
        fclose(out);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *in = fopen("table.txt", "r");
#ifndef REPAIRED
    setvbuf(in, NULL, _IONBF, 0);
#endif
    long sum = 0;
    char line[16];
    for (int i = 0; i < 60000; i++)
        if (fgets(line, sizeof line, in))
            sum += atol(line);
    fclose(in);
    double x = sum;
    for (int i = 0; i < 40000000; i++)
        x = x * 0.9999999 + 1e-9;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%f\n", x);
    MPI_Finalize();
}
