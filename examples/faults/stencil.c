/* The loop of a small stencil code, with faults: see --help and README.md. */
#include "load.h"
#include "calls.h"
#include "truth.h"

#include <stdio.h>
#include <sys/prctl.h>

/* Times one part of an iteration from outside, as a tracer would. */
static void timed(struct run *run, enum region region, void (*part)(struct run *, int), int iteration)
{
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    part(run, iteration);
    record_add(&run->record, CPU_S, region, iteration, now(CLOCK_THREAD_CPUTIME_ID) - cpu);
    record_add(&run->record, WALL_S, region, iteration, now(CLOCK_MONOTONIC) - wall);
}

static void first_phase(struct run *run, int iteration)
{
    const struct options *options = &run->options;
    timed(run, COMPUTE_FLUXES, compute_fluxes, iteration);
    if (options->thrash || options->rowwise)
        timed(run, SUM_ARRAY, sum_array, iteration);
    if (options->false_sharing || options->padded)
        timed(run, COUNT_CELLS, count_cells, iteration);
    timed(run, BARRIERS, barrier, iteration);
}

static void second_phase(struct run *run, int iteration)
{
    timed(run, UPDATE_CELLS, update_cells, iteration);
    for (int i = 0; i < 1 + run->options.barriers; i++)
        timed(run, BARRIERS, barrier, iteration);
}

static void communication_phase(struct run *run, int iteration)
{
    const struct options *options = &run->options;
    int even = run->rank % 2 == 0;
    if ((options->late_s > 0 && even) || (options->straggler_s > 0 && run->rank == 0))
        timed(run, UPDATE_EDGES, update_edges, iteration);
    timed(run, EXCHANGE_HALO, exchange_halo, iteration);
    if (options->late_s > 0 && !even)
        timed(run, UPDATE_EDGES, update_edges, iteration);
    if (options->pipeline_s > 0)
        timed(run, SWEEP_LINE, sweep_line, iteration);
    if (options->writes_all || options->writes_one)
        timed(run, WRITE_OUTPUT, write_output, iteration);
    timed(run, SUM_RESIDUAL, sum_residual, iteration);
}

static void iterate(struct run *run, int iteration)
{
    if (run->options.serial_s > 0) {
        timed(run, SERIAL_PART, serial_part, iteration);
        timed(run, BARRIERS, barrier, iteration);
    }
    first_phase(run, iteration);
    second_phase(run, iteration);
    communication_phase(run, iteration);
}

static void run_loop(struct run *run)
{
    calls_follow(&run->options, run->file);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now(CLOCK_MONOTONIC);
    for (int iteration = 0; iteration < run->options.iters; iteration++)
        iterate(run, iteration);
    run->record.loop_wall_s = now(CLOCK_MONOTONIC) - begin;
    calls_follow(NULL, -1);
}

static void run_program(struct run *run, struct truth *truth)
{
    double begin = now(CLOCK_MONOTONIC);
    record_create(&run->record, run->options.iters, run->options.threads);
    setup_mesh(run);
    run_loop(run);
    release_mesh(run);
    run->record.main_wall_s = now(CLOCK_MONOTONIC) - begin;
    truth_gather(truth, run);
}

int main(int count, char **words)
{
    struct run run = {.file = -1};
    struct truth truth;
    int provided;
    prctl(PR_SET_TIMERSLACK, 1000UL); /* Sleeps of microseconds would take 50 more. */
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    int problem = options_parse(&run.options, count, words, run.rank != 0);
    if (problem == 0)
        run_program(&run, &truth);
    MPI_Finalize();
    /* The truth is written after the end of the run, so that it is no part of it. */
    if (problem == 0 && run.rank == 0) {
        problem = 2 * truth_write(&truth, &run, count, words);
        printf("stencil: ranks %d threads %d iterations %d loop %.6f s\n", run.ranks, run.options.threads,
               run.options.iters, truth.loop_wall_s);
    }
    if (problem == 0)
        record_free(&run.record);
    return problem == 1 ? 0 : problem;
}
