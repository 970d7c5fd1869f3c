/* The ground truth of a run, as JSON. */
#ifndef TRUTH_H
#define TRUTH_H

#include "run.h"

struct truth {
    double *seconds;        /* [ranks][SECONDS][REGIONS][iters]; on rank 0 alone, as all that follows */
    double *thread_seconds; /* [ranks][THREAD_SECONDS][REGIONS][threads][iters] */
    double *counts;         /* [ranks][COUNTS] */
    double loop_wall_s, main_wall_s;
};

/* Collects all ranks' records on rank 0, unseen by tracers of MPI. */
void truth_gather(struct truth *truth, struct run *run);

/* Writes the file --truth and releases what was gathered; returns 0, or 1 with a message on stderr. */
int truth_write(struct truth *truth, const struct run *run, int count, char **words);

#endif
