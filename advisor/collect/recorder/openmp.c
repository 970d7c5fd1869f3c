/* OpenMP: libgomp by its entry points, LLVM's runtime and those like it by OMPT.

   A fork and a join enclose a parallel region; each thread's part is a record of its own, and its end is the thread's
   arrival at the barrier that ends the region. */
#define _GNU_SOURCE
#include "recorder.h"

#include <stdlib.h>

#include "posix_numbers.h"

struct team {
  void (*body)(void *);
  void *data;
  const void *caller;
};

static void part(void *given) {
  struct team *team = given;
  int depth = gw_depth; /* the first thread is in the library's code here */
  gw_depth = 0;
  gw_attach();
  struct gw_record *r = gw_open(F_omp_parallel, team->caller);
  team->body(team->data);
  gw_close(r);
  gw_depth = depth;
}

static void fork_event(unsigned threads, const void *caller) {
  if (!gw_attach()) return;
  struct gw_record *r = gw_note(GW_FORK, 0);
  if (!r) return;
  r->size = threads;
  r->caller = (uint64_t)(uintptr_t)caller & 0xffffffffffffu;
}

static void join_event(void) { gw_note(GW_JOIN, 0); }

#define TEAM(name, parameters, arguments)                                              \
  void name parameters {                                                               \
    static void(*real) parameters;                                                     \
    if (!real) real = (void(*) parameters)gw_resolve(#name);                           \
    struct team team = {body, data, __builtin_return_address(0)};                      \
    if (gw_on && !gw_depth) {                                                          \
      fork_event(threads, team.caller);                                                \
      gw_depth++;                                                                      \
      body = part;                                                                     \
      data = &team;                                                                    \
      real arguments;                                                                  \
      gw_depth--;                                                                      \
      join_event();                                                                    \
    } else real arguments;                                                             \
  }

TEAM(GOMP_parallel, (void (*body)(void *), void *data, unsigned threads, unsigned flags), (body, data, threads, flags))
TEAM(GOMP_parallel_sections, (void (*body)(void *), void *data, unsigned threads, unsigned count, unsigned flags),
     (body, data, threads, count, flags))
#define TEAM_LOOP(name)                                                                                            \
  TEAM(name, (void (*body)(void *), void *data, unsigned threads, long begin, long end, long step, long chunk,     \
              unsigned flags), (body, data, threads, begin, end, step, chunk, flags))
#define TEAM_RUNTIME(name)                                                                                         \
  TEAM(name, (void (*body)(void *), void *data, unsigned threads, long begin, long end, long step, unsigned flags), \
       (body, data, threads, begin, end, step, flags))
TEAM_LOOP(GOMP_parallel_loop_static)
TEAM_LOOP(GOMP_parallel_loop_dynamic)
TEAM_LOOP(GOMP_parallel_loop_guided)
TEAM_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
TEAM_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
TEAM_RUNTIME(GOMP_parallel_loop_runtime)
TEAM_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
TEAM_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

#define WAITING(name, function, parameters, arguments)                                                     \
  void name parameters {                                                                                   \
    static void(*real) parameters;                                                                         \
    if (!real) real = (void(*) parameters)gw_resolve(#name);                                               \
    struct gw_record *r = ENTER(function);     \
    real arguments;                                                                                        \
    gw_leave(r);                                                                                           \
  }

WAITING(GOMP_barrier, F_omp_barrier, (void), ())
WAITING(GOMP_loop_end, F_omp_implicit_barrier, (void), ())
WAITING(GOMP_sections_end, F_omp_implicit_barrier, (void), ())
WAITING(GOMP_critical_start, F_omp_critical, (void), ())
WAITING(GOMP_critical_name_start, F_omp_critical, (void **name), (name))
WAITING(GOMP_atomic_start, F_omp_atomic, (void), ())
WAITING(GOMP_ordered_start, F_omp_ordered, (void), ())
WAITING(GOMP_taskwait, F_omp_taskwait, (void), ())
WAITING(GOMP_taskgroup_end, F_omp_taskwait, (void), ())

/* OMPT, as far as it is needed here; the numbers are those of the standard. */
union data {
  uint64_t value;
  void *pointer;
};
typedef int (*set_callback)(int, void (*)(void));
typedef void (*entry)(void);
enum { PARALLEL_BEGIN = 3, PARALLEL_END = 4, IMPLICIT_TASK = 7, SYNC_REGION = 23, MUTEX_ACQUIRE = 26,
       MUTEX_ACQUIRED = 27 };
enum { BEGIN = 1, END = 2 };

static __thread struct {
  struct gw_record *part, *wait;
  int index;
} mine __attribute__((tls_model("initial-exec")));

static void parallel_begin(union data *task, const void *frame, union data *parallel, unsigned threads, int flags,
                           const void *caller) {
  (void)task;
  (void)frame;
  (void)flags;
  parallel->pointer = (void *)(uintptr_t)caller;
  if (gw_on && !gw_depth) fork_event(threads, caller);
}

static void parallel_end(union data *parallel, union data *task, int flags, const void *caller) {
  (void)parallel;
  (void)task;
  (void)flags;
  (void)caller;
  if (gw_on && !gw_depth) join_event();
}

static void implicit_task(int endpoint, union data *parallel, union data *task, unsigned threads, unsigned index,
                          int flags) {
  (void)task;
  (void)threads;
  if (flags & 1) return; /* the program itself */
  if (endpoint == BEGIN) {
    gw_attach();
    mine.index = (int)index;
    mine.part = gw_open(F_omp_parallel, parallel ? parallel->pointer : NULL);
  } else if (mine.part) {
    gw_close(mine.part);
    mine.part = NULL;
  }
}

static void sync_region(int kind, int endpoint, union data *parallel, union data *task, const void *caller) {
  (void)task;
  int ends_part = parallel && (kind == 9 || kind == 2) && !caller;
  if (endpoint == BEGIN && mine.part && (kind == 9 || (ends_part && mine.index))) {
    gw_close(mine.part); /* the other threads hear of the end only when they are needed again */
    mine.part = NULL;
  } else if (endpoint == BEGIN && mine.part) {
    unsigned function = kind == 5 || kind == 6 ? F_omp_taskwait : kind == 2 || kind == 8 ? F_omp_implicit_barrier
                                                                                         : F_omp_barrier;
    mine.wait = gw_open(function, caller);
  } else if (endpoint == END && mine.wait) {
    gw_close(mine.wait);
    mine.wait = NULL;
  }
}

static void mutex_acquire(int kind, unsigned hint, unsigned how, uint64_t id, const void *caller) {
  (void)hint;
  (void)how;
  (void)id;
  static const unsigned functions[] = {F_omp_lock,     F_omp_lock,     F_omp_lock,   F_omp_lock, F_omp_lock,
                                       F_omp_critical, F_omp_atomic, F_omp_ordered};
  if (gw_on && !gw_depth && gw_self && !mine.wait)
    mine.wait = gw_open(functions[kind >= 0 && kind < 8 ? kind : 0], caller);
}

static void mutex_acquired(int kind, uint64_t id, const void *caller) {
  (void)kind;
  (void)id;
  (void)caller;
  if (mine.wait) gw_close(mine.wait);
  mine.wait = NULL;
}

static int initialize(entry (*lookup)(const char *), int device, union data *data) {
  (void)device;
  (void)data;
  set_callback set = (set_callback)lookup("ompt_set_callback");
  if (!set) return 0;
  set(PARALLEL_BEGIN, (entry)parallel_begin);
  set(PARALLEL_END, (entry)parallel_end);
  set(IMPLICIT_TASK, (entry)implicit_task);
  set(SYNC_REGION, (entry)sync_region);
  set(MUTEX_ACQUIRE, (entry)mutex_acquire);
  set(MUTEX_ACQUIRED, (entry)mutex_acquired);
  return 1;
}

static void finalize(union data *data) { (void)data; }

struct result {
  int (*initialize)(entry (*)(const char *), int, union data *);
  void (*finalize)(union data *);
  union data data;
};

struct result *ompt_start_tool(unsigned version, const char *runtime) {
  static struct result result = {initialize, finalize, {0}};
  (void)version;
  (void)runtime;
  return getenv("GAPWATCH_RECORDING") ? &result : NULL;
}
