/* Ranks N random keys by counting, K times, as the kernel buk of the NAS Parallel Benchmarks does. */
#include <stdio.h>
#include <stdlib.h>

enum { KINDS = 2048 };

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 10000, times = argc > 2 ? atol(argv[2]) : 5, sum = 0;
    int *key = malloc(n * sizeof *key), *rank = malloc(n * sizeof *rank), count[KINDS];
    unsigned long state = 1;
    for (long i = 0; i < n; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        key[i] = state >> 53;
    }
    for (long k = 0; k < times; k++) {
        for (int i = 0; i < KINDS; i++) count[i] = 0;
        for (long i = 0; i < n; i++) count[key[i]]++;
        for (int i = 1; i < KINDS; i++) count[i] += count[i - 1];
        for (long i = 0; i < n; i++) rank[i] = --count[key[i]];
        sum += rank[n / 2];
    }
    printf("%ld\n", sum);
    return 0;
}
