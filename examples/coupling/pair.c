/* Two kernels that push each other's data out of the cache, and the same work with the cause removed.
 *
 *     pair N [PASSES]           react_a over all N points, then react_b over all N points, PASSES times
 *     pair N [PASSES] BLOCK     the same block by block: all passes over BLOCK points before the next block
 *
 * Both kernels advance a quantity at each point by itself, from three arrays of their own each. Where the data of one
 * kernel fit into a cache and those of both do not, each finds its data gone. Since no point needs another one, the
 * loop over the passes can go inside the loop over blocks that fit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gapwatch_coupling.h"

static double *a, *a_rate, *a_limit, *b, *b_rate, *b_limit;

static void react_a(long first, long end)
{
    for (long i = first; i < end; i++)
        a[i] += a_rate[i] * (a_limit[i] - a[i]);
}

static void react_b(long first, long end)
{
    for (long i = first; i < end; i++)
        b[i] += b_rate[i] * (b_limit[i] - b[i]);
}

static double *field(long points, double value, double step)
{
    double *values = aligned_alloc(64, ((size_t)points * sizeof(double) + 63) / 64 * 64);
    if (!values)
        exit(1);
    for (long i = 0; i < points; i++)
        values[i] = value + step * (double)(i % 97);
    return values;
}

int main(int argc, char **argv)
{
    long points = argc > 1 ? atol(argv[1]) : 65536;
    long passes = coupling_passes(argc > 2 ? atol(argv[2]) : 1000);
    long block = argc > 3 ? atol(argv[3]) : points;
    if (points < 1 || block < 1) {
        fprintf(stderr, "usage: pair N [PASSES [BLOCK]]\n");
        return 2;
    }
    a = field(points, 0.1, 1e-3), a_rate = field(points, 0.2, 1e-3), a_limit = field(points, 1.0, 1e-3);
    b = field(points, 0.3, 1e-3), b_rate = field(points, 0.1, 1e-3), b_limit = field(points, 2.0, 1e-3);

    coupling_start();
    for (long first = 0; first < points; first += block) {
        long end = first + block < points ? first + block : points;
        for (long pass = 0; pass < passes; pass++) {
            COUPLE("react_a", react_a(first, end));
            COUPLE("react_b", react_b(first, end));
        }
    }
    coupling_stop();

    double sum = 0;
    for (long i = 0; i < points; i++)
        sum += a[i] + b[i];
    printf("checksum %.12g\n", sum);
    return 0;
}
