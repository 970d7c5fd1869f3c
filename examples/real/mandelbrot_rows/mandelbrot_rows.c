/* Escape times of a Mandelbrot set, gathered on rank 0: blocks of rows cost very different times. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 600, HEIGHT = 600, LIMIT = 5000 };

static int count_iterations(double a, double b)
{
    double x = 0.0, y = 0.0;
    int n = 0;
    while (n < LIMIT && x * x + y * y < 4.0) {
        double next = x * x - y * y + a;
        y = 2.0 * x * y + b;
        x = next;
        n++;
    }
    return n;
}

static void compute_row(int row, int *out)
{
    for (int j = 0; j < WIDTH; j++)
        out[j] = count_iterations(-2.0 + 3.0 * j / WIDTH, -1.8 + 3.0 * row / HEIGHT);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = HEIGHT / size;
    int *mine = malloc(sizeof *mine * rows * WIDTH), *all = malloc(sizeof *all * HEIGHT * WIDTH);
    for (int i = 0; i < rows; i++)
#ifdef REPAIRED
        compute_row(i * size + rank, mine + i * WIDTH);
#else
        compute_row(rank * rows + i, mine + i * WIDTH);
#endif
    MPI_Gather(mine, rows * WIDTH, MPI_INT, all, rows * WIDTH, MPI_INT, 0, MPI_COMM_WORLD);
    long sum = 0;
    for (int i = 0; rank == 0 && i < rows * size * WIDTH; i++)
        sum += all[i];
    if (rank == 0)
        printf("iterations %ld\n", sum);
    MPI_Finalize();
}
