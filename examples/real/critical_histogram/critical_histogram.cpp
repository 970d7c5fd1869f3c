// A histogram that all threads write behind one lock.
#include <omp.h>
#include <cstdio>
#include <vector>

static int find_bin(unsigned long seed)
{
    double x = 0.0;
    for (int i = 0; i < 300; i++) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        x += (seed >> 40) / 16777216.0;
    }
    return (int)x % 100;
}

int main()
{
    std::vector<long> bins(100, 0);
    const int count = 1500000;
#ifdef REPAIRED
#pragma omp parallel
    {
        std::vector<long> own(100, 0);
#pragma omp for
        for (int i = 0; i < count; i++)
            own[find_bin(i)]++;
#pragma omp critical
        for (int b = 0; b < 100; b++)
            bins[b] += own[b];
    }
#else
#pragma omp parallel for
    for (int i = 0; i < count; i++) {
        const int bin = find_bin(i);
#pragma omp critical
        bins[bin]++;
    }
#endif
    long sum = 0;
    for (int b = 0; b < 100; b++)
        sum += b * bins[b];
    std::printf("mean %f\n", (double)sum / count);
}
