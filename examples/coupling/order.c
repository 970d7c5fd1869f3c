/* Four kernels of which two work on one field and two on another, in an order that changes the field each time.
 *
 *     order N [PASSES]           heat_a, flow_a, heat_b, flow_b over N points each, PASSES times
 *     order N [PASSES] sorted    heat_a, heat_b, flow_a, flow_b: the same numbers
 *
 * Where one field fits into a cache and both do not, each kernel finds the other field there. The fields do not need
 * each other, so that the order is free as long as each field's kernels keep theirs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gapwatch_coupling.h"

static double *heat, *heat_rate, *flow, *flow_rate;

static void heat_a(long n)
{
    for (long i = 0; i < n; i++)
        heat[i] += heat_rate[i] * (1.0 - heat[i]);
}

static void heat_b(long n)
{
    for (long i = 0; i < n; i++)
        heat_rate[i] = 0.1 + 0.01 * heat[i];
}

static void flow_a(long n)
{
    for (long i = 0; i < n; i++)
        flow[i] += flow_rate[i] * (2.0 - flow[i]);
}

static void flow_b(long n)
{
    for (long i = 0; i < n; i++)
        flow_rate[i] = 0.2 + 0.01 * flow[i];
}

static double *field(long points, double value)
{
    double *values = aligned_alloc(64, ((size_t)points * sizeof(double) + 63) / 64 * 64);
    if (!values)
        exit(1);
    for (long i = 0; i < points; i++)
        values[i] = value + 1e-3 * (double)(i % 97);
    return values;
}

int main(int argc, char **argv)
{
    long points = argc > 1 ? atol(argv[1]) : 32768;
    long passes = coupling_passes(argc > 2 ? atol(argv[2]) : 1000);
    int sorted = argc > 3;
    if (points < 1) {
        fprintf(stderr, "usage: order N [PASSES [sorted]]\n");
        return 2;
    }
    heat = field(points, 0.1), heat_rate = field(points, 0.2);
    flow = field(points, 0.3), flow_rate = field(points, 0.1);

    coupling_start();
    for (long pass = 0; pass < passes; pass++) {
        COUPLE("heat_a", heat_a(points));
        if (sorted)
            COUPLE("heat_b", heat_b(points));
        COUPLE("flow_a", flow_a(points));
        if (!sorted)
            COUPLE("heat_b", heat_b(points));
        COUPLE("flow_b", flow_b(points));
    }
    coupling_stop();

    double sum = 0;
    for (long i = 0; i < points; i++)
        sum += heat[i] + flow[i];
    printf("checksum %.12g\n", sum);
    return 0;
}
