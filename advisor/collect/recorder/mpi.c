/* What the generated wrappers of MPI functions share: communicators, requests, datatypes, files. */
#define _GNU_SOURCE
#include <mpi.h>
#include "recorder.h"
#include "posix_numbers.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI /* whose constants are addresses in a library that other programs we are preloaded to don't have */
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)gw_find_data(#global))
#endif

static void *pmpi(void **place, const char *name) { return *place ? *place : (*place = gw_resolve(name)); }
#define PMPI(name) __extension__({ static void *place; (__typeof__(&P##name))pmpi(&place, "P" #name); })

static MPI_Group world_group;
static int world_known; /* not the same as gw_on: recording may have begun before, without the ranks */
static MPI_Datatype byte_type;
static MPI_Request no_request;
static char table_lock;

/* A thread that has it may be off its core: the others give way to it. */
static void hold(void) {
  for (unsigned turn = 1; __atomic_test_and_set(&table_lock, __ATOMIC_ACQUIRE); turn++)
    if (turn % 64 == 0) sched_yield();
}

static void let_go(void) { __atomic_clear(&table_lock, __ATOMIC_RELEASE); }

#include "requests.c"

static void fill(struct gw_record *record, unsigned event, int comm, int partner, int tag, int64_t size,
                 uint32_t request) {
  if (!record) return;
  record->comm = (uint16_t)comm;
  record->partner = partner;
  record->tag = tag;
  record->size = size;
  record->request = request;
  record->event = event;
}

#include "communicators.c"

static int64_t bytes(int64_t count, MPI_Datatype type) {
  int size = 0;
  if (count <= 0 || PMPI(MPI_Type_size)(type, &size) || size < 0) return 0;
  return count * size;
}

#include "repeated.c"

static int64_t received(const MPI_Status *status) {
  int count = 0;
  if (PMPI(MPI_Get_count)(status, byte_type, &count) || count == MPI_UNDEFINED) return -1;
  return count;
}

static void send_event(struct gw_record *r, unsigned event, int64_t size, int dest, int tag, MPI_Comm comm) {
  if (r && dest != MPI_PROC_NULL) fill(r, event, COMM(comm), dest, tag, size, 0);
}

static void recv_event(struct gw_record *r, const MPI_Status *status, MPI_Comm comm) {
  if (r && status->MPI_SOURCE != MPI_PROC_NULL)
    fill(r, GW_RECV, COMM(comm), status->MPI_SOURCE, status->MPI_TAG, received(status), 0);
}

/* A message beside the one that the call's own record holds. */
static void recv_message(struct gw_record *r, const MPI_Status *status, MPI_Comm comm) {
  if (r && status->MPI_SOURCE != MPI_PROC_NULL) recv_event(gw_note(GW_MESSAGE, 0), status, comm);
}

static void isend_event(struct gw_record *r, const MPI_Request *request, int64_t size, int dest, int tag,
                        MPI_Comm comm) {
  if (!r || dest == MPI_PROC_NULL || *request == no_request) return;
  fill(r, GW_ISEND, COMM(comm), dest, tag, size, add_request(request, GW_ISEND, COMM(comm), dest, tag, size, 0));
}

static void posted(const MPI_Request *request, struct gw_record *post) {
  hold();
  struct entry *e = entry_of(HANDLE(*request), request);
  if (e) e->post = post;
  let_go();
}

static void irecv_event(struct gw_record *r, const MPI_Request *request, int64_t size, int source, int tag,
                        MPI_Comm comm) {
  if (!r || source == MPI_PROC_NULL || *request == no_request) return;
  fill(r, GW_IRECV_POST, COMM(comm), GW_NOBODY, 0, size,
       add_request(request, GW_IRECV, COMM(comm), source, tag, size, 0));
  posted(request, r);
}

/* Requests for more than one message, beside the kinds of events. */
#define SENDRECV 255
#define EXCHANGE 254
#include "neighbours.c"

static void isendrecv_event(struct gw_record *r, const MPI_Request *request, int64_t size, int dest, int sendtag,
                            int64_t room, int source, int recvtag, MPI_Comm comm) {
  if (!r || *request == no_request) return;
  uint32_t number = add_request(request, 0, COMM(comm), source, recvtag, room, 0);
  hold();
  struct entry *e = entry_of(HANDLE(*request), request);
  if (e) {
    e->event = (uint8_t)(source == MPI_PROC_NULL ? GW_ISEND : dest == MPI_PROC_NULL ? GW_IRECV : SENDRECV);
  }
  let_go();
  if (dest != MPI_PROC_NULL) fill(r, GW_ISEND, COMM(comm), dest, sendtag, size, number);
  if (source != MPI_PROC_NULL)
    fill(gw_note(GW_MESSAGE, 0), GW_IRECV_POST, COMM(comm), GW_NOBODY, 0, room, number);
}

static void persistent(struct gw_record *r, const MPI_Request *request, unsigned event, int64_t size, int partner,
                       int tag, MPI_Comm comm) {
  if (!r || *request == no_request) return;
  add_request(request, partner == MPI_PROC_NULL ? 0 : event, COMM(comm), partner, tag, size, 1);
}

static void nonblocking(struct gw_record *r, unsigned event, int64_t size, int root, MPI_Comm comm) {
  if (r) fill(r, event, COMM(comm), root, 0, size, 0);
}

/* Start one persistent request; the first one of a call stands in the call's own record. */
static void started(struct gw_record *r, const MPI_Request *request) {
  if (!r || *request == no_request) return;
  hold();
  struct entry *e = entry_of(HANDLE(*request), request);
  struct entry copy = {0};
  if (e && e->persistent) {
    e->active = 1;
    e->request = ++last_request;
    copy = *e;
  }
  let_go();
  if (!copy.event) return;
  struct gw_record *to = r->event ? gw_note(GW_MESSAGE, 0) : r;
  if (copy.event == GW_ISEND) fill(to, GW_ISEND, copy.comm, copy.partner, copy.tag, copy.size, copy.request);
  else {
    fill(to, GW_IRECV_POST, copy.comm, GW_NOBODY, 0, copy.size, copy.request);
    posted(request, to);
  }
}

/* A request that was `handle` is complete. */
static void completed(struct gw_record *r, MPI_Request handle, const MPI_Request *variable, const MPI_Status *status) {
  if (!r || handle == no_request) return;
  hold();
  struct entry *e = entry_of(HANDLE(handle), variable);
  struct entry copy = {0};
  if (e && e->active) {
    copy = *e;
    if (e->persistent) e->active = 0;
    else remove_entry(e);
  }
  let_go();
  if (!copy.event) return;
  if (copy.event == EXCHANGE) {
    end_exchange(r, copy.exchange);
    return;
  }
  int cancelled = 0;
  if (copy.cancelled && status) PMPI(MPI_Test_cancelled)(status, &cancelled);
  if (copy.event != GW_IRECV)
    fill(gw_note(GW_MESSAGE, 0), GW_ISEND_DONE, copy.comm, GW_NOBODY, 0, copy.size, copy.request);
  if (cancelled && copy.post) copy.post->event = 0;
  if (copy.event == GW_ISEND || cancelled) return;
  int source = status ? status->MPI_SOURCE : copy.partner, tag = status ? status->MPI_TAG : copy.tag;
  int64_t size = status ? received(status) : copy.size;
  if (copy.event == SENDRECV && copy.partner >= 0 && (source != copy.partner || (copy.tag >= 0 && tag != copy.tag)))
    source = copy.partner, tag = copy.tag, size = copy.size; /* MPICH 4.0 fills in nothing for MPI_Isendrecv */
  if (source == MPI_PROC_NULL) return;
  if (source < 0 || (copy.persistent && copy.partner >= 0 && copy.partner != source)) source = copy.partner;
  fill(gw_note(GW_MESSAGE, 0), GW_IRECV, copy.comm, source, tag, size, copy.request);
}

static void forget(struct gw_record *r, MPI_Request handle, const MPI_Request *variable) {
  if (!r || handle == no_request) return;
  hold();
  struct entry *e = entry_of(HANDLE(handle), variable);
  if (e) remove_entry(e);
  let_go();
}

static void cancelling(struct gw_record *r, const MPI_Request *request) {
  if (!r || *request == no_request) return;
  hold();
  struct entry *e = entry_of(HANDLE(*request), request);
  if (e) e->cancelled = 1;
  let_go();
}

/* Room for copies of handles and statuses of one call. */
static __thread MPI_Request *handles __attribute__((tls_model("initial-exec")));
static __thread MPI_Status *statuses __attribute__((tls_model("initial-exec")));
static __thread int handle_room __attribute__((tls_model("initial-exec")));

static void copy_handles(struct gw_record *r, int count, const MPI_Request *from) {
  if (!r || count <= 0) return;
  if (count > handle_room) {
    handle_room = count + count / 2 + 16;
    handles = realloc(handles, sizeof *handles * (size_t)handle_room);
    statuses = realloc(statuses, sizeof *statuses * (size_t)handle_room);
  }
  memcpy(handles, from, sizeof *handles * (size_t)count);
}

/* Messages that were probed and taken out of the queue, by handle. */
static void probed(struct gw_record *r, const MPI_Message *message, MPI_Comm comm) {
  if (r) add_request((const MPI_Request *)(const void *)message, GW_RECV, COMM(comm), 0, 0, 0, 0);
}

static int comm_of_message(MPI_Message message) {
  hold();
  struct entry *e = entry_of(HANDLE(message), NULL);
  int comm = e ? e->comm : 0;
  if (e) remove_entry(e);
  let_go();
  return comm;
}

/* Files of MPI-IO. */
static struct {
  MPI_File file;
  int number;
} files[256];

int gw_new_file(const char *name);

static void opened_file(struct gw_record *r, MPI_File file, const char *name) {
  if (!r) return;
  hold();
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (!files[i].number || files[i].file == file) {
      files[i].file = file;
      files[i].number = gw_new_file(name);
      break;
    }
  let_go();
}

static void file_event(struct gw_record *r, MPI_File file, int64_t size) {
  if (!r) return;
  for (size_t i = 0; i < sizeof files / sizeof *files && files[i].number; i++)
    if (files[i].file == file) {
      fill(r, GW_IO, 0, files[i].number, 0, size, 0);
      return;
    }
  fill(r, GW_IO, 0, GW_NOBODY, 0, size, 0);
}

/* Bytes of collectives: sent and received by this rank. */
static int64_t sum_bytes(const void *counts, int wide, int n, MPI_Datatype type) {
  int64_t sum = 0;
  for (int i = 0; i < n; i++) sum += wide ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
  return bytes(sum, type);
}

static int64_t sum_each(const void *counts, int wide, int n, const MPI_Datatype *types) {
  int64_t sum = 0;
  for (int i = 0; i < n; i++)
    sum += bytes(wide ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i], types[i]);
  return sum;
}

/* Begin recording once the ranks of the world are known, by `world_group`. */
static void begin_mpi(void) {
  int rank = 0, ranks = 1, length = 0;
  world_known = 1;
  no_request = MPI_REQUEST_NULL;
  byte_type = MPI_BYTE;
  PMPI(MPI_Group_rank)(world_group, &rank);
  PMPI(MPI_Group_size)(world_group, &ranks);
  gw_start(rank, ranks);
  if (!gw_on) return;
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  PMPI(MPI_Get_library_version)(text, &length);
  gw_tell_text("mpi", -1, text);
}

static void begin_world(void) {
  PMPI(MPI_Comm_group)(MPI_COMM_WORLD, &world_group);
  begin_mpi();
  if (!gw_on) return;
  gw_depth++;
  comm_of(MPI_COMM_WORLD);
  gw_depth--;
}

#ifdef MPI_SESSION_NULL /* of MPI 4: programs may do without MPI_Init and the communicator of the world */
static void begin_session(MPI_Session session) {
  if (world_known || PMPI(MPI_Group_from_session_pset)(session, "mpi://WORLD", &world_group)) return;
  begin_mpi();
}
#endif

/* MPI_Init itself, which began before there was anything to write to. */
static void init_record(unsigned function, void *caller, uint64_t begin_ns) {
  struct gw_record *r = gw_enter(function, caller);
  if (!r) return;
  r->start_ns = begin_ns;
  gw_leave(r);
}
