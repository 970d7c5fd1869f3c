/* What one rank notes down about its run: seconds injected and measured, and counts. */
#ifndef RECORD_H
#define RECORD_H

#include <stddef.h>

enum region {
    SERIAL_PART,
    COMPUTE_FLUXES,
    SUM_ARRAY,
    COUNT_CELLS,
    UPDATE_CELLS,
    UPDATE_EDGES,
    EXCHANGE_HALO,
    SWEEP_LINE,
    WRITE_OUTPUT,
    SUM_RESIDUAL,
    BARRIERS,
    REGIONS
};

/* Seconds by region and iteration: injected ones by what they are, then what the program measured. */
enum seconds { WORK_S, TRANSFER_S, SYNC_S, IO_S, OS_S, WALL_S, CPU_S, SECONDS };

/* Seconds by region, thread and iteration. */
enum thread_seconds { THREAD_WORK_S, THREAD_WALL_S, THREAD_SECONDS };

enum count { MESSAGES, MESSAGE_BYTES, REDUCTIONS, BARRIER_CALLS, WRITES, WRITE_BYTES, FSYNCS, FORKS, LOADS, ADDS, COUNTS };

extern const char *const region_names[REGIONS];
extern const char *const seconds_names[SECONDS];
extern const char *const thread_seconds_names[THREAD_SECONDS];
extern const char *const count_names[COUNTS];

struct record {
    int iters, threads;
    double *seconds;        /* [SECONDS][REGIONS][iters] */
    double *thread_seconds; /* [THREAD_SECONDS][REGIONS][threads][iters] */
    double counts[COUNTS];
    double loop_wall_s, main_wall_s;
};

void record_create(struct record *record, int iters, int threads);
void record_free(struct record *record);
size_t record_length(const struct record *record);
size_t record_thread_length(const struct record *record);

/* Adds seconds to the arrays above. */
void record_add(struct record *record, enum seconds what, enum region region, int iteration, double seconds);
void record_thread_add(struct record *record, enum thread_seconds what, enum region region, int thread, int iteration,
                       double seconds);

#endif
