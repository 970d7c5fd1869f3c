/* The computation: two balanced or unbalanced phases, and the parts that one rank does before the others can go on. */
#include "load.h"

#include <omp.h>

/* One thread works, and writes down how long that took. */
static void work_alone(struct run *run, enum region region, int iteration, double seconds)
{
    double begin = now(CLOCK_MONOTONIC);
    spend(&run->options, seconds);
    int thread = omp_get_thread_num();
    record_thread_add(&run->record, THREAD_WORK_S, region, thread, iteration, seconds);
    record_thread_add(&run->record, THREAD_WALL_S, region, thread, iteration, now(CLOCK_MONOTONIC) - begin);
}

static void work_together(struct run *run, enum region region, int iteration, double seconds)
{
    const struct options *options = &run->options;
    for (int part = 0; part < options->fork_joins; part++) {
#pragma omp parallel num_threads(options->threads)
        work_alone(run, region, iteration, seconds / options->fork_joins * thread_share(options, omp_get_thread_num()));
    }
    run->record.counts[FORKS] += options->fork_joins;
}

/* A rank's part of a phase; with --omp-serial its first thread also does a share of the others' work. */
static void work(struct run *run, enum region region, int iteration, double seconds)
{
    const struct options *options = &run->options;
    double alone = options->threads > 1 ? options->omp_serial : 0;
    if (options->threads == 1)
        work_alone(run, region, iteration, seconds);
    else
        work_together(run, region, iteration, seconds * (1 - alone));
    if (alone > 0)
        work_alone(run, region, iteration, seconds * alone * options->threads);
    record_add(&run->record, WORK_S, region, iteration, seconds * (1 + alone * (options->threads - 1)));
}

void compute_fluxes(struct run *run, int iteration)
{
    work(run, COMPUTE_FLUXES, iteration, rank_load(run, 0, iteration));
    if (run->options.oswait_s > 0) {
        pause_for(run->options.oswait_s);
        record_add(&run->record, OS_S, COMPUTE_FLUXES, iteration, run->options.oswait_s);
    }
}

void update_cells(struct run *run, int iteration)
{
    work(run, UPDATE_CELLS, iteration, rank_load(run, 1, iteration));
}

void serial_part(struct run *run, int iteration)
{
    if (run->rank != 0)
        return;
    work_alone(run, SERIAL_PART, iteration, run->options.serial_s);
    record_add(&run->record, WORK_S, SERIAL_PART, iteration, run->options.serial_s);
}

void update_edges(struct run *run, int iteration)
{
    double seconds = run->options.late_s + (run->rank == 0 ? run->options.straggler_s : 0);
    work_alone(run, UPDATE_EDGES, iteration, seconds);
    record_add(&run->record, WORK_S, UPDATE_EDGES, iteration, seconds);
}
