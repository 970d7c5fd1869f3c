/* Stars that attract each other. The pairs of stars are shared out over the ranks, and the forces added up in each step.

   galaxy [STARS [STEPS]] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

/* The row of the triangle of pairs at which a rank's part begins. */
static int begin(int part, int n)
{
    return part * n / ranks;
}

/* Adds the forces between stars i and j > i, for the rows i of this rank. */
static void attract(int n, const double *position, double *force)
{
    for (int i = begin(rank, n); i < begin(rank + 1, n); i++)
        for (int j = i + 1; j < n; j++) {
            double away[3], square = 1e-3;
            for (int d = 0; d < 3; d++) {
                away[d] = position[3 * j + d] - position[3 * i + d];
                square += away[d] * away[d];
            }
            double strength = 1.0 / (n * square * sqrt(square));
            for (int d = 0; d < 3; d++) {
                force[3 * i + d] += strength * away[d];
                force[3 * j + d] -= strength * away[d];
            }
        }
}

static void move(int n, double *position, double *velocity, const double *force)
{
    for (int k = 0; k < 3 * n; k++) {
        velocity[k] += 1e-3 * force[k];
        position[k] += 1e-3 * velocity[k];
    }
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int n = count > 1 ? atoi(words[1]) : 4000, steps = count > 2 ? atoi(words[2]) : 20;
    size_t bytes = sizeof(double) * 3 * (size_t)n;
    double *position = malloc(bytes), *velocity = calloc(1, bytes), *force = malloc(bytes), speed = 0.0;

    for (int k = 0; rank == 0 && k < 3 * n; k++)
        position[k] = (double)rand() / RAND_MAX;
    MPI_Bcast(position, 3 * n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int s = 0; s < steps; s++) {
        memset(force, 0, bytes);
        attract(n, position, force);
        MPI_Allreduce(MPI_IN_PLACE, force, 3 * n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        move(n, position, velocity, force);
    }
    for (int k = 0; k < 3 * n; k++)
        speed += fabs(velocity[k]) / n;
    if (rank == 0)
        printf("mean speed after %d steps: %.6f; %.2f s\n", steps, speed, MPI_Wtime() - start);
    MPI_Finalize();
}
