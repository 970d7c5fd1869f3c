// Rank 0 builds a table for all in each step and broadcasts it.
#include <mpi.h>
#include <cmath>
#include <cstdio>
#include <vector>

static void build_table(std::vector<double> &table, double time, std::size_t first, std::size_t last)
{
    for (std::size_t i = first; i < last; i++)
        table[i] = std::exp(-1e-5 * i) * std::sin(time + 1e-3 * i);
}

static double apply_table(const std::vector<double> &table, std::vector<double> &cells)
{
    double sum = 0.0;
    for (std::size_t i = 0; i < cells.size(); i++) {
        cells[i] = 0.9 * cells[i] + table[i % table.size()] / (1.0 + cells[i] * cells[i]);
        sum += cells[i];
    }
    return sum;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<double> table(60000), cells(600000 / size, 0.5);
    double sum = 0.0, own;
    for (int step = 0; step < 400; step++) {
#ifdef REPAIRED
        const std::size_t part = table.size() / size;
        build_table(table, 0.01 * step, rank * part, (rank + 1) * part);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DOUBLE, table.data(), (int)part, MPI_DOUBLE, MPI_COMM_WORLD);
#else
        if (rank == 0)
            build_table(table, 0.01 * step, 0, table.size());
        MPI_Bcast(table.data(), (int)table.size(), MPI_DOUBLE, 0, MPI_COMM_WORLD);
#endif
        own = apply_table(table, cells);
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        std::printf("sum %f\n", sum);
    MPI_Finalize();
}
