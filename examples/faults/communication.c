/* Barriers, the halo exchange with both neighbours, the sweep from left to right, and the reductions. */
#include "load.h"

#include <stdlib.h>

void barrier(struct run *run, int iteration)
{
    MPI_Barrier(MPI_COMM_WORLD);
    run->record.counts[BARRIER_CALLS] += 1;
    record_add(&run->record, SYNC_S, BARRIERS, iteration, run->options.barrier_cost_s);
}

/* The bytes of one of the messages into which the halo is cut. */
static int piece(const struct options *options)
{
    return (options->halo_bytes + options->messages - 1) / options->messages;
}

static void count_message(struct run *run, enum region region, int iteration, int bytes)
{
    run->record.counts[MESSAGES] += 1;
    run->record.counts[MESSAGE_BYTES] += bytes;
    record_add(&run->record, TRANSFER_S, region, iteration, run->options.message_cost_s);
}

static int start_messages(struct run *run, int peer, MPI_Request *requests)
{
    int bytes = piece(&run->options), used = 0;
    char *received = run->halo + bytes;
    for (int tag = 0; tag < run->options.messages; tag++)
        MPI_Irecv(received, bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD, &requests[used++]);
    for (int tag = 0; tag < run->options.messages; tag++)
        MPI_Isend(run->halo, bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD, &requests[used++]);
    return used;
}

static void swap_message(struct run *run, int peer, int tag)
{
    int bytes = piece(&run->options), first = run->rank % 2 == 0;
    char *sent = run->halo, *received = run->halo + bytes;
    if (run->options.exchange == EXCHANGE_SENDRECV) {
        MPI_Sendrecv(sent, bytes, MPI_CHAR, peer, tag, received, bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        return;
    }
    if (first)
        MPI_Send(sent, bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD);
    MPI_Recv(received, bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first)
        MPI_Send(sent, bytes, MPI_CHAR, peer, tag, MPI_COMM_WORLD);
}

void exchange_halo(struct run *run, int iteration)
{
    /* Even ranks begin on their right and odd ones on their left, so that blocking calls meet. */
    int step = run->rank % 2 == 0 ? 1 : -1, used = 0;
    for (int side = 0; side < 2; side++, step = -step) {
        int peer = run->rank + step;
        if (peer < 0 || peer >= run->ranks)
            continue;
        if (run->options.exchange == EXCHANGE_ISEND)
            used += start_messages(run, peer, run->requests + used);
        for (int tag = 0; tag < run->options.messages; tag++) {
            if (run->options.exchange != EXCHANGE_ISEND)
                swap_message(run, peer, tag);
            count_message(run, EXCHANGE_HALO, iteration, piece(&run->options));
        }
    }
    if (used)
        MPI_Waitall(used, run->requests, MPI_STATUSES_IGNORE);
}

void sweep_line(struct run *run, int iteration)
{
    const struct options *options = &run->options;
    int tag = options->messages; /* One that the halo does not use. */
    if (run->rank > 0)
        MPI_Recv(run->halo, 1, MPI_CHAR, run->rank - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    spend(options, options->pipeline_s);
    record_add(&run->record, WORK_S, SWEEP_LINE, iteration, options->pipeline_s);
    if (run->rank + 1 < run->ranks) {
        MPI_Send(run->halo, 1, MPI_CHAR, run->rank + 1, tag, MPI_COMM_WORLD);
        count_message(run, SWEEP_LINE, iteration, 1);
    }
}

void sum_residual(struct run *run, int iteration)
{
    double mine = 1.0, all = 0.0;
    for (int i = 0; i < run->options.reductions; i++) {
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        run->record.counts[REDUCTIONS] += 1;
        record_add(&run->record, TRANSFER_S, SUM_RESIDUAL, iteration, run->options.reduction_cost_s);
    }
    run->result += all;
}
