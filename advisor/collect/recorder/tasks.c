/* Tasks of OpenMP: each run of one is a record that encloses what it calls, wherever a thread takes it up.

   libgomp is given another body and, in front of the task's data, a header that says what to run. Its first three words
   are those that libgomp itself writes or reads at the begin of a taskloop's data: the bounds of the part, and the
   reductions. LLVM's runtime tells of tasks by OMPT (openmp.c). */
#define _GNU_SOURCE
#include "recorder.h"

#include <stdbool.h>
#include <string.h>

#include "posix_numbers.h"

#define DETACHABLE (1u << 13) /* libgomp writes the task's event to where the data of these begin */
#define REDUCING (1u << 12)   /* and looks for reductions there */
#define BRIEF_NS 10000        /* tasks that follow each other and are shorter become one record */
#define NEXT_NS 1000

struct header {
  uint64_t bounds[2], reductions;
  void (*body)(void *);
  void (*copy)(void *, void *);
  void *data; /* where the program keeps what `copy` copies */
  const void *caller;
  size_t offset;
  bool detachable;
};

static size_t round_up(size_t size, size_t to) { return (size + to - 1) / to * to; }

/* Whether a record is as brief as those that were joined in the one before it, of the same place, and follows closely. */
static int joins(const struct gw_record *before, const struct gw_record *r) {
  return before->kind == GW_CALL && before->end_ns && before->function == r->function && before->caller == r->caller &&
         !r->cpu_start_ns && !r->cpu_end_ns && r->size < BRIEF_NS && r->start_ns - before->end_ns < NEXT_NS &&
         before->size < BRIEF_NS * (int64_t)(before->tag + 1);
}

static void join(struct gw_record *before, struct gw_record *r) {
  before->tag++;
  before->size += r->size;
  before->end_ns = r->end_ns;
  r->kind = 0;
  memset(r, 0, sizeof *r);
}

/* Close a record; a brief one joins the one before it. Its size is the time inside, without what lay between. A task that
   was run right where it was created joins the one before it together with its creation. */
void gw_close_brief(struct gw_record *r) {
  struct gw_thread *t = gw_self;
  if (!r || !t) return;
  const struct gw_record *previous = t->previous, *end = (void *)(t->records.base + t->records.used);
  const struct gw_record *inner = end == r + 2 && r[1].function == F_omp_task && previous == r + 1 ? r + 1 : NULL;
  gw_close(r);
  r->size = (int64_t)(r->end_ns - r->start_ns);
  if (end != (void *)(t->records.base + t->records.used)) return; /* a state came behind it */
  if (inner) {
    r->size -= inner->end_ns - inner->start_ns;
    struct gw_record *before = r - 2;
    if (t->lone != before || !joins(before, r) || r[1].cpu_start_ns || r[1].cpu_end_ns ||
        before[1].function != F_omp_task || before[1].caller != r[1].caller) {
      t->lone = r;
      return;
    }
    before[1].tag += r[1].tag;
    join(before + 1, r + 1);
    join(before, r);
    t->records.used -= 2 * sizeof *r;
    t->previous = before;
  } else if (end == r + 1 && previous == r - 1 && joins(r - 1, r)) {
    join(r - 1, r);
    t->records.used -= sizeof *r;
    t->previous = r - 1;
  }
}

static void run_task(void *given) {
  struct header *h = given;
  void *data = (char *)given + h->offset;
  int depth = gw_depth; /* the thread is in the library's code here */
  gw_depth = 0;
  gw_attach();
  struct gw_record *r = gw_open(F_omp_task, h->caller);
  if (h->detachable) memcpy(data, h->bounds, sizeof(void *));
  h->body(data);
  gw_close_brief(r);
  gw_depth = depth;
}

static void run_part_of_loop(void *given) {
  struct header *h = given;
  memcpy((char *)given + h->offset, h->bounds, sizeof h->bounds);
  run_task(given);
}

static void copy_task(void *to, void *from) {
  struct header *h = from;
  memcpy(to, h, sizeof *h);
  h->copy((char *)to + h->offset, h->data);
}

/* Fill in `to`, the header of a task's data with room behind it; with a function that copies, data stay where they are. */
static void wrap(struct header *to, void (*body)(void *), void *data, void (*copy)(void *, void *), long size, size_t offset,
                 const void *caller) {
  *to = (struct header){.body = body, .copy = copy, .data = data, .caller = caller, .offset = offset};
  if (!copy) memcpy((char *)to + offset, data, (size_t)size);
}

#define HEADED(align) round_up(sizeof(struct header), (size_t)(align) > 8 ? (size_t)(align) : 8)

void GOMP_task(void (*body)(void *), void *data, void (*copy)(void *, void *), long size, long align, bool deferred,
               unsigned flags, void **depend, int priority, void *detach) {
  typedef void (*task)(void (*)(void *), void *, void (*)(void *, void *), long, long, bool, unsigned, void **, int,
                       void *);
  task real = GW_REAL(task, "GOMP_task");
  if (!gw_on || gw_depth || !gw_self) {
    real(body, data, copy, size, align, deferred, flags, depend, priority, detach);
    return;
  }
  const void *caller = __builtin_return_address(0);
  size_t offset = HEADED(align);
  char room[offset + (copy ? 0 : (size_t)size) + (size_t)align];
  struct header *wrapped = (void *)round_up((size_t)room, align > 8 ? (size_t)align : 8);
  wrap(wrapped, body, data, copy, size, offset, caller);
  wrapped->detachable = flags & DETACHABLE;
  struct gw_record *r = gw_open(F_omp_task_create, caller);
  gw_depth++;
  real(run_task, wrapped, copy ? copy_task : NULL, size + (long)offset, align > 8 ? align : 8, deferred, flags, depend,
       priority, detach);
  gw_depth--;
  gw_close_brief(r);
}

#define TASKLOOP(name, type)                                                                                           \
  void name(void (*body)(void *), void *data, void (*copy)(void *, void *), long size, long align, unsigned flags,     \
            unsigned long tasks, int priority, type start, type end, type step) {                                      \
    typedef void (*loop)(void (*)(void *), void *, void (*)(void *, void *), long, long, unsigned, unsigned long, int, \
                         type, type, type);                                                                            \
    loop real = GW_REAL(loop, #name);                                                                                  \
    if (!gw_on || gw_depth || !gw_self) {                                                                              \
      real(body, data, copy, size, align, flags, tasks, priority, start, end, step);                                   \
      return;                                                                                                          \
    }                                                                                                                  \
    const void *caller = __builtin_return_address(0);                                                                  \
    size_t offset = HEADED(align);                                                                                     \
    char room[offset + (copy ? 0 : (size_t)size) + (size_t)align];                                                     \
    struct header *wrapped = (void *)round_up((size_t)room, align > 8 ? (size_t)align : 8);                            \
    wrap(wrapped, body, data, copy, size, offset, caller);                                                             \
    if (flags & REDUCING) wrapped->reductions = ((uint64_t *)data)[2];                                                 \
    struct gw_record *r = gw_open(F_omp_taskloop, caller);                                                             \
    gw_depth++;                                                                                                        \
    real(run_part_of_loop, wrapped, copy ? copy_task : NULL, size + (long)offset, align > 8 ? align : 8, flags, tasks, \
         priority, start, end, step);                                                                                  \
    gw_depth--;                                                                                                        \
    gw_close(r);                                                                                                       \
  }

TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)
