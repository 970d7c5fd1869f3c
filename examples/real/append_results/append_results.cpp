// A parameter study that opens its file for each result.
#include <mpi.h>
#include <cmath>
#include <fstream>
#include <string>

static double relax(double parameter)
{
    double x = 0.3;
    for (int i = 0; i < 9000; i++)
        x = parameter * x * (1.0 - x);
    return x;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const std::string name = "study-" + std::to_string(rank) + ".txt";
#ifdef REPAIRED
    std::ofstream out(name);
    for (int i = 0; i < 12000; i++)
        out << relax(2.5 + i * 1e-4) << '\n';
#else
    for (int i = 0; i < 12000; i++) {
        const double x = relax(2.5 + i * 1e-4);
        std::ofstream out(name, std::ios::app);
        out << x << '\n';
    }
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
