/* Each thread counts in its own element of one array: all of them lie in one line of the cache, which goes to and fro.
   Repaired, each counts in a variable of its own. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };
static volatile long hits[MOST];

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 300000000;
#pragma omp parallel
    {
        int me = omp_get_thread_num();
        unsigned state = 12345u + (unsigned)me;
#ifdef REPAIRED
        long mine = 0;
#endif
#pragma omp for
        for (long i = 0; i < n; i++) {
            state = state * 1664525u + 1013904223u;
#ifdef REPAIRED
            mine += state >> 31;
#else
            hits[me] += state >> 31;
#endif
        }
#ifdef REPAIRED
        hits[me] = mine;
#endif
    }
    long sum = 0;
    for (int t = 0; t < MOST; t++)
        sum += hits[t];
    printf("%.2f\n", (double)sum / (double)n);
    return 0;
}
