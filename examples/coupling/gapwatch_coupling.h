/* Lets a program run a chosen chain of its kernels in a loop, for `gapwatch couple` (docs/plugins/coupling.md).
 *
 *     coupling_start();
 *     for (int pass = 0; pass < coupling_passes(200); pass++) {
 *         COUPLE("x_solve", x_solve(u));
 *         COUPLE("y_solve", y_solve(u));
 *     }
 *     coupling_stop();
 *
 * GAPWATCH_CHAIN names the kernels to run, with commas; GAPWATCH_PASSES how often. Without them the program is what it
 * was: all kernels, as many passes as it asks for, and nothing printed. C99 and C++; of an MPI program rank 0 prints,
 * so put a barrier before coupling_start and coupling_stop.
 */
#ifndef GAPWATCH_COUPLING_H
#define GAPWATCH_COUPLING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* 1 if the kernel is to run: it is in the chain, or no chain was asked for. */
static inline int coupling_runs(const char *kernel)
{
    const char *chain = getenv("GAPWATCH_CHAIN");
    size_t length = strlen(kernel);
    if (!chain)
        return 1;
    for (const char *name = chain; name; name = strchr(name, ',')) {
        name += *name == ',';
        if (!strncmp(name, kernel, length) && (name[length] == ',' || name[length] == '\0'))
            return 1;
    }
    return 0;
}

/* The passes through the loop: GAPWATCH_PASSES, or those of the program. */
static inline long coupling_passes(long passes)
{
    const char *asked = getenv("GAPWATCH_PASSES");
    return asked ? strtol(asked, NULL, 10) : passes;
}

/* Run CALL if the kernel NAME is to run; the name is looked up once. */
#define COUPLE(NAME, CALL)                       \
    do {                                         \
        static int chosen_ = -1;                 \
        if (chosen_ < 0)                         \
            chosen_ = coupling_runs(NAME);       \
        if (chosen_) {                           \
            CALL;                                \
        }                                        \
    } while (0)

static inline double coupling_clock_(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double coupling_started_, coupling_cpu_started_;

static inline void coupling_start(void)
{
    coupling_started_ = coupling_clock_(CLOCK_MONOTONIC);
    coupling_cpu_started_ = coupling_clock_(CLOCK_PROCESS_CPUTIME_ID);
}

/* Print what the loop took by the clock, and of CPU time over all threads, if a chain or passes were asked for. */
static inline void coupling_stop(void)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    double seconds = coupling_clock_(CLOCK_MONOTONIC) - coupling_started_;
    double cpu = coupling_clock_(CLOCK_PROCESS_CPUTIME_ID) - coupling_cpu_started_;
    if (!getenv("GAPWATCH_CHAIN") && !getenv("GAPWATCH_PASSES"))
        return;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (getenv(ranks[i])) {
            if (strcmp(getenv(ranks[i]), "0"))
                return;
            break;
        }
    printf("coupling: loop %.9f s, cpu %.9f s\n", seconds, cpu);
    fflush(stdout);
}

#endif
