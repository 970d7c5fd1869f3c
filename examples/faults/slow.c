/* A fault that costs microseconds in shared memory costs milliseconds on a loaded network or file system. These wrappers
 * stand between the program and the libraries, behind a tracer's own: the tracer sees calls that take that long. */
#define _GNU_SOURCE
#include "slow.h"

#include "load.h"

#include <dlfcn.h>
#include <mpi.h>
#include <sys/types.h>
#include <unistd.h>

static const struct options *costs;
static int slow_file;

void slow_down(const struct options *options, int file)
{
    costs = options;
    slow_file = file;
}

int MPI_Barrier(MPI_Comm comm)
{
    int result = PMPI_Barrier(comm);
    pause_for(costs ? costs->barrier_cost_s : 0);
    return result;
}

int MPI_Allreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int result = PMPI_Allreduce(sent, received, count, type, op, comm);
    pause_for(costs ? costs->reduction_cost_s : 0);
    return result;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    pause_for(costs ? costs->message_cost_s : 0);
    return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
{
    pause_for(costs ? costs->message_cost_s : 0);
    return PMPI_Send(data, count, type, peer, tag, comm);
}

int MPI_Sendrecv(const void *sent, int sent_count, MPI_Datatype sent_type, int to, int sent_tag, void *received,
                 int received_count, MPI_Datatype received_type, int from, int received_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    pause_for(costs ? costs->message_cost_s : 0);
    return PMPI_Sendrecv(sent, sent_count, sent_type, to, sent_tag, received, received_count, received_type, from,
                         received_tag, comm, status);
}

ssize_t write(int file, const void *data, size_t bytes)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    pause_for(costs && file == slow_file ? costs->write_cost_s : 0);
    return real(file, data, bytes);
}

int fsync(int file)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    pause_for(costs && file == slow_file ? costs->fsync_cost_s : 0);
    return real(file);
}
