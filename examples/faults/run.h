/* One rank's run, and the functions of the program that a tracer sees. */
#ifndef RUN_H
#define RUN_H

#include "options.h"
#include "record.h"

#include <mpi.h>

/* A region is a function of its own in the shared library, so that tracers can intercept it by name. */
#define REGION __attribute__((noinline, visibility("default")))

struct run {
    struct options options;
    struct record record;
    int rank, ranks;
    char *halo;            /* what is sent and received */
    MPI_Request *requests; /* room for all messages of one exchange */
    double *array;         /* --thrash, --rowwise */
    int file;              /* --io-all, --io-one */
    double result;
};

/* Before and after the loop: buffers, the output file. */
REGION void setup_mesh(struct run *run);
void release_mesh(struct run *run);

/* The parts of one iteration, in this order; each does nothing unless its options ask for it. */
REGION void serial_part(struct run *run, int iteration);
REGION void compute_fluxes(struct run *run, int iteration);
REGION void sum_array(struct run *run, int iteration);
REGION void count_cells(struct run *run, int iteration);
REGION void update_cells(struct run *run, int iteration);
REGION void update_edges(struct run *run, int iteration);
REGION void exchange_halo(struct run *run, int iteration);
REGION void sweep_line(struct run *run, int iteration);
REGION void write_output(struct run *run, int iteration);
REGION void sum_residual(struct run *run, int iteration);

/* One barrier of all ranks, counted. */
void barrier(struct run *run, int iteration);

#endif
