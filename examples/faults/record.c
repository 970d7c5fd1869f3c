#include "record.h"

#include <stdio.h>
#include <stdlib.h>

const char *const region_names[REGIONS] = {
    "serial_part",   "compute_fluxes", "sum_array",    "count_cells",  "update_cells", "update_edges",
    "exchange_halo", "sweep_line",     "write_output", "sum_residual", "barriers",
};
const char *const seconds_names[SECONDS] = {
    "injected_s",    "injected_transfer_s", "injected_sync_s", "injected_io_s",
    "injected_os_s", "measured_wall_s",     "measured_cpu_s",
};
const char *const thread_seconds_names[THREAD_SECONDS] = {"injected_thread_s", "measured_thread_wall_s"};
const char *const count_names[COUNTS] = {
    "messages", "message_bytes", "reductions", "barriers", "writes",
    "write_bytes", "fsyncs", "fork_joins", "array_loads", "counter_adds",
};

static double *zeros(size_t length)
{
    double *values = calloc(length ? length : 1, sizeof *values);
    if (!values) {
        fputs("stencil: out of memory\n", stderr);
        exit(3);
    }
    return values;
}

void record_create(struct record *record, int iters, int threads)
{
    *record = (struct record){.iters = iters, .threads = threads};
    record->seconds = zeros(record_length(record));
    record->thread_seconds = zeros(record_thread_length(record));
}

void record_free(struct record *record)
{
    free(record->seconds);
    free(record->thread_seconds);
}

size_t record_length(const struct record *record)
{
    return (size_t)SECONDS * REGIONS * (size_t)record->iters;
}

size_t record_thread_length(const struct record *record)
{
    return (size_t)THREAD_SECONDS * REGIONS * (size_t)record->threads * (size_t)record->iters;
}

void record_add(struct record *record, enum seconds what, enum region region, int iteration, double seconds)
{
    size_t row = (size_t)what * REGIONS + region;
    record->seconds[row * (size_t)record->iters + (size_t)iteration] += seconds;
}

void record_thread_add(struct record *record, enum thread_seconds what, enum region region, int thread, int iteration,
                       double seconds)
{
    size_t row = ((size_t)what * REGIONS + region) * (size_t)record->threads + (size_t)thread;
    record->thread_seconds[row * (size_t)record->iters + (size_t)iteration] += seconds;
}
