/* Spending time, and how much of it each rank and thread is given. */
#ifndef LOAD_H
#define LOAD_H

#include "run.h"

#include <time.h>

double now(clockid_t clock);

/* Passes seconds of wall time, to the microsecond: asleep for all but the end. */
void pause_for(double seconds);

/* Works for seconds in the way of --work. */
void spend(const struct options *options, double seconds);

/* What this rank's threads are to work in the first (phase 0) or second (phase 1) phase of an iteration. */
double rank_load(const struct run *run, int phase, int iteration);

/* The share of it for one thread, 1 when threads are balanced. */
double thread_share(const struct options *options, int thread);

#endif
