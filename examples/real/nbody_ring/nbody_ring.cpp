// All pairs of particles, sent round in a ring; the ranks own unequal numbers of them.
#include <mpi.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

struct Body { double x, y, z, m; };
struct Force { double x = 0, y = 0, z = 0; };

static void add_forces(const std::vector<Body> &mine, const std::vector<Body> &theirs, std::vector<Force> &forces)
{
    for (std::size_t i = 0; i < mine.size(); i++) {
        Force f = forces[i];
        for (const Body &b : theirs) {
            const double dx = b.x - mine[i].x, dy = b.y - mine[i].y, dz = b.z - mine[i].z;
            const double r2 = dx * dx + dy * dy + dz * dz + 1e-3, w = b.m / (r2 * std::sqrt(r2));
            f.x += w * dx;
            f.y += w * dy;
            f.z += w * dz;
        }
        forces[i] = f;
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int total = 9000;
#ifdef REPAIRED
    const int own = total / size + (rank < total % size);
#else
    const int own = rank == 0 ? total * 7 / 10 : total * 3 / 10 / (size - 1);
#endif
    std::mt19937 engine(rank + 1);
    std::uniform_real_distribution<double> place(0.0, 1.0);
    std::vector<Body> bodies(own);
    for (Body &b : bodies)
        b = {place(engine), place(engine), place(engine), 1.0 / total};
    for (int step = 0; step < 12; step++) {
        std::vector<Force> forces(bodies.size());
        std::vector<Body> guests = bodies, next(total);
        for (int turn = 0; turn < size; turn++) {
            add_forces(bodies, guests, forces);
            MPI_Status status;
            MPI_Sendrecv(guests.data(), 4 * (int)guests.size(), MPI_DOUBLE, (rank + 1) % size, 0, next.data(), 4 * total,
                         MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &status);
            int count;
            MPI_Get_count(&status, MPI_DOUBLE, &count);
            guests.assign(next.begin(), next.begin() + count / 4);
        }
        for (std::size_t i = 0; i < bodies.size(); i++) {
            bodies[i].x += 1e-4 * forces[i].x;
            bodies[i].y += 1e-4 * forces[i].y;
            bodies[i].z += 1e-4 * forces[i].z;
        }
    }
    double own_x = 0, x;
    for (const Body &b : bodies)
        own_x += b.x;
    MPI_Reduce(&own_x, &x, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("centre %.6f\n", x / total);
    MPI_Finalize();
}
