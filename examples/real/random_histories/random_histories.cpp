// Histories of particles of very different lengths, a fixed number on each rank and in each batch.
#include <mpi.h>
#include <cmath>
#include <cstdio>
#include <random>

static double follow(unsigned long seed, int collisions)
{
    double energy = 1.0;
    for (int i = 0; i < collisions; i++) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        energy *= 1.0 - 1e-7 * (seed >> 40) / 16777216.0;
    }
    return energy;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::mt19937 lengths(3);
    double sum = 0.0;
    MPI_Win window;
    int *next;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &next, &window);
    for (int batch = 0; batch < 240; batch++) {
        int history[8];
        for (int &length : history) {
            length = (int)(100000 + 900000 * std::pow(lengths() / 4294967296.0, 3.0));
            if (lengths() % 4 == 0)
                length *= 4;
        }
        double own = 0.0, all;
#ifdef REPAIRED
        *next = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window);
        const int one = 1;
        while (true) {
            int task;
            MPI_Fetch_and_op(&one, &task, MPI_INT, 0, 0, MPI_SUM, window);
            MPI_Win_flush(0, window);
            if (task >= 8)
                break;
            own += follow(batch, history[task]);
        }
        MPI_Win_unlock_all(window);
#else
        for (int task = rank * 8 / size; task < (rank + 1) * 8 / size; task++)
            own += follow(batch, history[task]);
#endif
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    if (rank == 0)
        std::printf("energy %f\n", sum);
    MPI_Win_free(&window);
    MPI_Finalize();
}
