/* Gram-Schmidt on many short vectors: one reduction for each product. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { VECTORS = 240, LENGTH = 200 };

static double multiply(const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < LENGTH; i++)
        sum += a[i] * b[i];
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double (*v)[LENGTH] = malloc(VECTORS * sizeof *v), product[VECTORS];
    for (int pass = 0; pass < 12; pass++) {
        srand(rank + 7 * pass);
        for (int k = 0; k < VECTORS; k++)
            for (int i = 0; i < LENGTH; i++)
                v[k][i] = rand() / (double)RAND_MAX - 0.5;
        for (int k = 0; k < VECTORS; k++) {
#ifdef REPAIRED
            for (int j = 0; j < k; j++)
                product[j] = multiply(v[k], v[j]);
            MPI_Allreduce(MPI_IN_PLACE, product, k, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#else
            for (int j = 0; j < k; j++) {
                double own = multiply(v[k], v[j]);
                MPI_Allreduce(&own, &product[j], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            }
#endif
            for (int j = 0; j < k; j++)
                for (int i = 0; i < LENGTH; i++)
                    v[k][i] -= product[j] * v[j][i];
            double own = multiply(v[k], v[k]), norm;
            MPI_Allreduce(&own, &norm, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            for (int i = 0; i < LENGTH; i++)
                v[k][i] /= sqrt(norm);
        }
    }
    if (rank == 0)
        printf("%f\n", v[VECTORS - 1][0]);
    MPI_Finalize();
}
