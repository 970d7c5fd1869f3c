// Sort by splitters that take the keys for evenly spread; they are not.
#include <mpi.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

static void sort_bucket(std::vector<double> &keys)
{
    std::sort(keys.begin(), keys.end());
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::mt19937_64 engine(rank);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::vector<double> keys(400000);
    double sum = 0.0;
    for (int round = 0; round < 6; round++) {
        for (double &key : keys)
            key = std::pow(uniform(engine), 2.5);
        std::vector<double> limits(size + 1, 0.0);
#ifdef REPAIRED
        std::vector<double> sample(64 * size);
        MPI_Allgather(keys.data(), 64, MPI_DOUBLE, sample.data(), 64, MPI_DOUBLE, MPI_COMM_WORLD);
        std::sort(sample.begin(), sample.end());
        for (int r = 1; r < size; r++)
            limits[r] = sample[64 * r];
#else
        for (int r = 1; r < size; r++)
            limits[r] = (double)r / size;
#endif
        std::vector<std::vector<double>> parts(size);
        for (double key : keys)
            parts[std::upper_bound(limits.begin() + 1, limits.begin() + size, key) - limits.begin() - 1].push_back(key);
        std::vector<int> counts(size), got(size), at(size, 0), from(size, 0);
        std::vector<double> out;
        for (int r = 0; r < size; r++) {
            counts[r] = (int)parts[r].size();
            at[r] = (int)out.size();
            out.insert(out.end(), parts[r].begin(), parts[r].end());
        }
        MPI_Alltoall(counts.data(), 1, MPI_INT, got.data(), 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 1; r < size; r++)
            from[r] = from[r - 1] + got[r - 1];
        std::vector<double> mine(from[size - 1] + got[size - 1]);
        MPI_Alltoallv(out.data(), counts.data(), at.data(), MPI_DOUBLE, mine.data(), got.data(), from.data(), MPI_DOUBLE,
                      MPI_COMM_WORLD);
        sort_bucket(mine);
        double own = mine.empty() ? 0.0 : mine.front(), first;
        MPI_Allreduce(&own, &first, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += first;
    }
    if (rank == 0)
        std::printf("sum %f\n", sum);
    MPI_Finalize();
}
