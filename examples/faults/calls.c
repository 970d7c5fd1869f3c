/* These wrappers stand between the program and the libraries, behind a tracer's own: the tracer sees calls that take that
 * long. A fault that costs microseconds in shared memory costs milliseconds on a loaded network or file system. And MPI
 * waits by burning CPU time: where work is sleep, so that ranks need no cores, waiting must not need them either. */
#define _GNU_SOURCE
#include "calls.h"

#include "load.h"

#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

/* Whoever waits looks again and again for a short while, then naps between looks. */
static const double eager_s = 300e-6;
static const struct timespec nap = {.tv_nsec = 10000};

static const struct options *rules;
static int slow_file;

void calls_follow(const struct options *options, int file)
{
    rules = options;
    slow_file = file;
}

static int is_patient(void)
{
    return rules && rules->work == WORK_SLEEP;
}

static int wait_for(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int done = 0;
    double begin = now(CLOCK_MONOTONIC);
    for (;;) {
        int result = PMPI_Testall(count, requests, &done, statuses);
        if (done || result != MPI_SUCCESS)
            return result;
        if (now(CLOCK_MONOTONIC) - begin < eager_s)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
}

static MPI_Status *list(MPI_Status *status)
{
    return status == MPI_STATUS_IGNORE ? MPI_STATUSES_IGNORE : status;
}

int MPI_Barrier(MPI_Comm comm)
{
    MPI_Request request;
    int result = is_patient() ? PMPI_Ibarrier(comm, &request) : PMPI_Barrier(comm);
    if (is_patient())
        result = wait_for(1, &request, MPI_STATUSES_IGNORE);
    pause_for(rules ? rules->barrier_cost_s : 0);
    return result;
}

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    int result;
    if (is_patient()) {
        PMPI_Iallreduce(sent, received, count, type, op, comm, &request);
        result = wait_for(1, &request, MPI_STATUSES_IGNORE);
    } else
        result = PMPI_Allreduce(sent, received, count, type, op, comm);
    pause_for(rules ? rules->reduction_cost_s : 0);
    return result;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    pause_for(rules ? rules->message_cost_s : 0);
    return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    return is_patient() ? wait_for(count, requests, statuses) : PMPI_Waitall(count, requests, statuses);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
{
    MPI_Request request;
    pause_for(rules ? rules->message_cost_s : 0);
    if (!is_patient())
        return PMPI_Send(data, count, type, peer, tag, comm);
    PMPI_Isend(data, count, type, peer, tag, comm, &request);
    return wait_for(1, &request, MPI_STATUSES_IGNORE);
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    if (!is_patient())
        return PMPI_Recv(data, count, type, peer, tag, comm, status);
    PMPI_Irecv(data, count, type, peer, tag, comm, &request);
    return wait_for(1, &request, list(status));
}

int MPI_Sendrecv(const void *sent, int sent_count, MPI_Datatype sent_type, int to, int sent_tag, void *received,
                 int received_count, MPI_Datatype received_type, int from, int received_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    pause_for(rules ? rules->message_cost_s : 0);
    if (!is_patient())
        return PMPI_Sendrecv(sent, sent_count, sent_type, to, sent_tag, received, received_count, received_type, from,
                             received_tag, comm, status);
    PMPI_Irecv(received, received_count, received_type, from, received_tag, comm, &requests[0]);
    PMPI_Isend(sent, sent_count, sent_type, to, sent_tag, comm, &requests[1]);
    int result = wait_for(2, requests, statuses);
    if (status != MPI_STATUS_IGNORE)
        *status = statuses[0];
    return result;
}

ssize_t write(int file, const void *data, size_t bytes)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    pause_for(rules && file == slow_file ? rules->write_cost_s : 0);
    return real(file, data, bytes);
}

int fsync(int file)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    pause_for(rules && file == slow_file ? rules->fsync_cost_s : 0);
    return real(file);
}
