// Each thread counts primes in its own element of one array, which share a cache line.
#include <omp.h>
#include <cstdio>

static volatile long counters[64];

int main()
{
    const int threads = omp_get_max_threads();
#pragma omp parallel
    {
        const int me = omp_get_thread_num();
#ifdef REPAIRED
        long own = 0;
        for (long i = me; i < 300000000; i += threads)
            own += (i & 7) == 1;
        counters[me] = own;
#else
        for (long i = me; i < 300000000; i += threads)
            counters[me] = counters[me] + ((i & 7) == 1);
#endif
    }
    long sum = 0;
    for (int t = 0; t < threads; t++)
        sum += counters[t];
    std::printf("%ld\n", sum);
}
