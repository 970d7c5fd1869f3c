/* Faults of the memory system: strides through a large array, and counters of several threads in one cache line. */
#include "run.h"

#include <omp.h>
#include <stdalign.h>
#include <stdatomic.h>

enum { LINE = 64, COUNTERS = 256 };

struct padded_counter {
    alignas(LINE) atomic_long value;
};

static alignas(LINE) atomic_long packed[COUNTERS];
static struct padded_counter padded[COUNTERS];

static double sum_columns(const double *array, int n)
{
    double sum = 0;
    for (int column = 0; column < n; column++)
        for (int row = 0; row < n; row++)
            sum += array[(long)row * n + column];
    return sum;
}

static double sum_rows(const double *array, int n)
{
    double sum = 0;
    for (int row = 0; row < n; row++)
        for (int column = 0; column < n; column++)
            sum += array[(long)row * n + column];
    return sum;
}

void sum_array(struct run *run, int iteration)
{
    int columns = run->options.thrash, rows = run->options.rowwise;
    (void)iteration;
    run->result += sum_columns(run->array, columns) + sum_rows(run->array, rows);
    run->record.counts[LOADS] += (double)columns * columns + (double)rows * rows;
}

static void add(atomic_long *counter, int times)
{
    for (int i = 0; i < times; i++)
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void count_cells(struct run *run, int iteration)
{
    const struct options *options = &run->options;
    (void)iteration;
#pragma omp parallel num_threads(options->threads)
    {
        int thread = omp_get_thread_num() % COUNTERS;
        add(&packed[thread], options->false_sharing);
        add(&padded[thread].value, options->padded);
    }
    run->record.counts[FORKS] += 1;
    run->record.counts[ADDS] += ((double)options->false_sharing + options->padded) * options->threads;
}
