/* An ocean-like stencil: steps over an N x N grid cut into bands, edges exchanged, the largest speed reduced. */
#include "common.h"
#include <math.h>
#include <string.h>

enum { STEPS = 40 };

static double program(int n)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = n / size + (rank < n % size);
    double *h = numbers((size_t)(rows + 2) * n), *next = numbers((size_t)(rows + 2) * n);
    for (int r = 0; r < rows + 2; r++)
        for (int c = 0; c < n; c++)
            h[(size_t)r * n + c] = next[(size_t)r * n + c] = (r + c + rank) % 9;
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    double largest = 0.0;
    began();
    for (int step = 0; step < STEPS; step++) {
        MPI_Sendrecv(h + n, n, MPI_DOUBLE, up, 0, h + (size_t)(rows + 1) * n, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(h + (size_t)rows * n, n, MPI_DOUBLE, down, 1, h, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        double mine = 0.0;
        for (int r = 1; r <= rows; r++)
            for (int c = 1; c < n - 1; c++) {
                double *at = h + (size_t)r * n + c, slope = at[n] + at[-n] + at[1] + at[-1] - 4.0 * at[0];
                next[(size_t)r * n + c] = at[0] + 0.1 * slope - 0.01 * at[0] * fabs(at[1] - at[-1]);
                mine = fmax(mine, fabs(slope));
            }
        MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        double *swap = h;
        h = next;
        next = swap;
    }
    ended();
    double check = largest;
    free(h);
    free(next);
    return check;
}
