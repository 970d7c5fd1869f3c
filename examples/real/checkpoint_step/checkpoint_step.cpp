// A checkpoint of everything in every step, forced to storage.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>
#include <cstdio>
#include <string>
#include <vector>

static void smooth(std::vector<double> &a)
{
    for (int pass = 0; pass < 12; pass++)
        for (std::size_t i = 1; i + 1 < a.size(); i++)
            a[i] = 0.3 * a[i - 1] + 0.4 * a[i] + 0.3 * a[i + 1];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<double> a(200000, rank + 1.0);
    const std::string name = "restart-" + std::to_string(rank);
    for (int step = 0; step < 60; step++) {
        smooth(a);
#ifdef REPAIRED
        if (step % 20 != 19)
            continue;
#endif
        const int file = open(name.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
        if (write(file, a.data(), a.size() * sizeof(double)) < 0)
            return 1;
        fsync(file);
        close(file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
