// A hybrid program whose launcher binds both threads of a rank to one core.
#include <mpi.h>
#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char **argv)
{
    int given, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<double> a(400000, 1.5);
    double sum = 0.0;
    for (int step = 0; step < 150; step++) {
        double own = 0.0;
#pragma omp parallel for reduction(+ : own)
        for (std::size_t i = 0; i < a.size(); i++) {
            a[i] = std::sqrt(a[i] + i % 3) + 1.0 / (1.0 + a[i]);
            own += a[i];
        }
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        std::printf("%f\n", sum);
    MPI_Finalize();
}
