#include "load.h"

#include <math.h>

double now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void sleep_until(double end)
{
    struct timespec until = {.tv_sec = (time_t)end, .tv_nsec = (long)(1e9 * fmod(end, 1.0))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
}

void pause_for(double seconds)
{
    static const double late_s = 60e-6; /* A sleeper wakes up about that late. */
    if (seconds <= 0)
        return;
    double end = now(CLOCK_MONOTONIC) + seconds;
    sleep_until(end - late_s);
    while (now(CLOCK_MONOTONIC) < end)
        continue;
}

static void spin(double seconds)
{
    double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (now(CLOCK_THREAD_CPUTIME_ID) < end)
        continue;
}

static void calculate(double pairs)
{
    volatile double seed = 0.5; /* Volatile: else the compiler would know the result. */
    double value = seed;
    for (long i = 0; i < (long)pairs; i++)
        value = value * 0.999999 + 1e-6;
    seed = value;
}

void spend(const struct options *options, double seconds)
{
    if (seconds <= 0)
        return;
    if (options->work == WORK_SLEEP)
        sleep_until(now(CLOCK_MONOTONIC) + seconds);
    else if (options->work == WORK_FLOPS)
        calculate(seconds * options->rate);
    else
        spin(seconds);
}

/* From +1 for the first to -1 for the last of n: its mean is 0. */
static double ramp(int k, int n)
{
    return n > 1 ? 1.0 - 2.0 * k / (n - 1) : 0.0;
}

double rank_load(const struct run *run, int phase, int iteration)
{
    const struct options *options = &run->options;
    int place = (run->rank + run->ranks - options->heavy % run->ranks) % run->ranks;
    double load = 1.0 + options->imbalance * ramp(place, run->ranks);
    load += options->multiphase * ramp(place, run->ranks) * (phase == 0 ? 1 : -1);
    load += options->dynamic * ramp((place + iteration) % run->ranks, run->ranks);
    return load > 0 ? load * options->base_s : 0;
}

double thread_share(const struct options *options, int thread)
{
    return 1.0 + options->omp_imbalance * ramp(thread, options->threads);
}
