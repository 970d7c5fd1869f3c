/* CRASH: two phases over an unstructured mesh, in the versions of Hung and Davidson, section 4.1. See README.md. */
#include "crash.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Something that takes as long as its weight, and whose result matters. */
static double spend(double seed, double weight, double grain)
{
    double value = seed;
    for (long k = 0, n = (long)(weight * grain); k < n; k++)
        value = value * 0.999999 + 1e-9;
    return value - seed;
}

static double contact_weight(const struct mesh *mesh, int i, int cycle, int cycles)
{
    double front = (double)mesh->rows * cycle / cycles;
    double away = mesh->row[i] > front ? mesh->row[i] - front : front - mesh->row[i];
    return 90 + 45 * (mesh->first[i + 1] - mesh->first[i]) + (away < 2 ? 60 : 0);
}

/* First phase: the forces on the elements of a sub-domain, from themselves and all they touch. */
static void contact(struct run *run, const int *mine, int count, int cycle)
{
    const struct mesh *mesh = run->mesh;
    const double *pos = run->pos[run->copies > 1 ? cycle % 2 : 0], *vel = run->vel[run->copies > 1 ? cycle % 2 : 0];
    for (int k = 0; k < count; k++) {
        int i = mine[k];
        double sum[3];
        for (int c = 0; c < 3; c++)
            sum[c] = 1e-3 * pos[i * run->stride + c] - 1e-2 * vel[i * run->stride + c];
        for (int j = mesh->first[i]; j < mesh->first[i + 1]; j++) {
            int near = mesh->near[j] * run->stride;
            for (int c = 0; c < 3; c++)
                sum[c] += 1e-4 * (pos[near + c] - pos[i * run->stride + c]) + 1e-5 * vel[near + c];
        }
        sum[0] += spend(sum[0], contact_weight(mesh, i, cycle, run->cycles), run->grain);
        memcpy(run->force + i * run->stride, sum, sizeof sum);
    }
}

/* Second phase: new positions and velocities; plastic elements take longer. */
static void update(struct run *run, const int *mine, int count, int cycle)
{
    int old = run->copies > 1 ? cycle % 2 : 0, new = run->copies > 1 ? 1 - old : 0;
    for (int k = 0; k < count; k++) {
        int i = mine[k], plastic = run->mesh->plastic[i];
        double lost = spend(run->force[i * run->stride], plastic ? 240 : 130, run->grain);
        for (int c = 0; c < 3; c++) {
            int at = i * run->stride + c;
            double speed = run->vel[old][at] * (plastic ? 0.9 : 0.99) + run->force[at] + 1e-12 * lost;
            run->vel[new][at] = speed;
            run->pos[new][at] = run->pos[old][at] + 1e-2 * speed;
        }
    }
}

/* SP, SD and SD2: a parallel loop for each phase; whichever thread comes takes the next sub-domain. */
static void run_loops(struct run *run)
{
    const struct parts *parts = run->parts;
    for (int cycle = 0; cycle < run->cycles; cycle++) {
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 1)
            for (int d = 0; d < parts->count; d++)
                contact(run, parts->element + parts->first[d], parts->first[d + 1] - parts->first[d], cycle);
        }
#pragma omp parallel
        {
#pragma omp for schedule(dynamic, 1)
            for (int d = 0; d < parts->count; d++)
                update(run, parts->element + parts->first[d], parts->first[d + 1] - parts->first[d], cycle);
        }
    }
}

/* SD3, SD4 and SD8: threads live through the main loop, each with its own sub-domain. */
static void run_bound(struct run *run)
{
    const struct parts *parts = run->parts;
#pragma omp parallel
    {
        int d = omp_get_thread_num(), count = parts->first[d + 1] - parts->first[d];
        const int *mine = parts->element + parts->first[d];
        for (int cycle = 0; cycle < run->cycles; cycle++) {
            contact(run, mine, count, cycle);
            if (run->copies == 1) {
#pragma omp barrier
            }
            if (run->twice) {
#pragma omp barrier
            }
            update(run, mine, count, cycle);
#pragma omp barrier
            if (run->twice) {
#pragma omp barrier
            }
        }
    }
}

static double barrier_s(void)
{
    double begin = omp_get_wtime();
#pragma omp parallel
    for (int k = 0; k < 2000; k++) {
#pragma omp barrier
    }
    return (omp_get_wtime() - begin) / 2000;
}

int main(int argc, char **argv)
{
    struct run run = options(argc, argv);
    omp_set_num_threads(run.parts->count);
    double barrier = barrier_s();
    double begin = omp_get_wtime();
    if (run.bound)
        run_bound(&run);
    else
        run_loops(&run);
    double seconds = omp_get_wtime() - begin;
    printf("{\"version\": \"%s\", \"threads\": %d, \"seconds\": %.6f, \"barrier_s\": %.9f, \"checksum\": %.12e}\n",
           run.version, run.parts->count, seconds, barrier, checksum(&run));
    return 0;
}
