/* Pi from N pseudo-random points: one generator, so each point waits for the one before. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252ull;

static double uniform(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 200000, inside = 0;
    for (long i = 0; i < n; i++) {
        double x = uniform(), y = uniform();
        inside += x * x + y * y < 1;
    }
    printf("%g\n", 4.0 * inside / n);
    return 0;
}
