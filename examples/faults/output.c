/* Memory and files of a run, and the output written in its iterations. */
#include "load.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void give_up(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void *room(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory)
        give_up("stencil: memory");
    return memory;
}

static int writes(const struct run *run)
{
    return run->options.writes_all + (run->rank == 0 ? run->options.writes_one : 0);
}

static void open_output(struct run *run)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/output.%d", run->options.out, run->rank);
    run->file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    if (run->file < 0)
        give_up(path);
}

void setup_mesh(struct run *run)
{
    const struct options *options = &run->options;
    int side = options->thrash > options->rowwise ? options->thrash : options->rowwise;
    size_t halo = (size_t)options->halo_bytes + (size_t)options->messages;
    run->halo = room(halo > (size_t)options->write_bytes ? 2 * halo : 2 * (size_t)options->write_bytes);
    run->requests = room(4 * (size_t)options->messages * sizeof *run->requests);
    run->array = room((size_t)side * (size_t)side * sizeof *run->array);
    for (long i = 0; i < (long)side * side; i++)
        run->array[i] = 1.0;
    run->file = -1;
    if (writes(run) > 0)
        open_output(run);
}

void release_mesh(struct run *run)
{
    free(run->halo);
    free(run->requests);
    free(run->array);
    if (run->file >= 0)
        close(run->file);
}

static void write_piece(struct run *run, int iteration)
{
    int bytes = run->options.write_bytes;
    if (write(run->file, run->halo, (size_t)bytes) != bytes)
        give_up("stencil: write");
    run->record.counts[WRITES] += 1;
    run->record.counts[WRITE_BYTES] += bytes;
    record_add(&run->record, IO_S, WRITE_OUTPUT, iteration, run->options.write_cost_s);
}

static void wait_for_disk(struct run *run, int iteration)
{
    if (fsync(run->file) != 0)
        give_up("stencil: fsync");
    run->record.counts[FSYNCS] += 1;
    record_add(&run->record, IO_S, WRITE_OUTPUT, iteration, run->options.fsync_cost_s);
}

void write_output(struct run *run, int iteration)
{
    int pieces = writes(run);
    for (int i = 0; i < pieces; i++)
        write_piece(run, iteration);
    for (int i = 0; pieces > 0 && i < run->options.fsyncs; i++)
        wait_for_disk(run, iteration);
}
