/* OpenMP: libgomp by its entry points, LLVM's runtime and those like it by OMPT.

   A fork and a join enclose a parallel region; each thread's part is a record of its own, and its end is the thread's
   arrival at the barrier that ends the region. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdlib.h>

#include "posix_numbers.h"

static int uses_ompt;          /* whether a runtime tells of its locks by OMPT */
static char unnamed, atomic; /* whose addresses stand for the locks that have none */

struct team {
  void (*body)(void *);
  void *data;
};

/* A parallel region is placed at the beginning of its body: its call shares instructions, and so lines, with what the
   compiler moved around it. Callers are return addresses, which lie behind what they name. */
static const void *place_of(void (*body)(void *)) { return (const char *)(uintptr_t)body + 1; }

static void part(void *given) {
  struct team *team = given;
  int depth = gw_depth; /* the first thread is in the library's code here */
  gw_depth = 0;
  gw_attach();
  struct gw_record *r = gw_open(F_omp_parallel, place_of(team->body));
  team->body(team->data);
  gw_close(r);
  gw_depth = depth;
}

static void fork_event(unsigned threads, const void *caller) {
  if (!gw_attach()) return;
  struct gw_record *r = gw_note(GW_FORK, 0);
  if (!r) return;
  r->size = threads;
  r->caller = GW_CALLER(caller);
}

static void join_event(void) { gw_note(GW_JOIN, 0); }

#define TEAM(name, parameters, arguments)                                              \
  void name parameters {                                                               \
    void(*real) parameters = GW_REAL(void(*) parameters, #name);                       \
    struct team team = {body, data};                                                   \
    if (gw_on && !gw_depth) {                                                          \
      fork_event(threads, place_of(team.body));                                        \
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

/* Taking a lock, and giving it back; `lock` says which. */
#define TAKING(name, function, parameters, arguments, lock)                                                \
  void name parameters {                                                                                   \
    void(*real) parameters = GW_REAL(void(*) parameters, #name);                                           \
    int counted = !uses_ompt && gw_lock_counted(function, __builtin_return_address(0), lock);              \
    struct gw_record *r = uses_ompt || counted ? NULL : ENTER_BRIEF(function);                             \
    gw_lock_awaited(r, lock);                                                                              \
    real arguments;                                                                                        \
    if (counted) gw_counted_lock_taken(lock);                                                              \
    else gw_lock_taken(r, lock);                                                                           \
  }
#define GIVING(name, parameters, arguments, lock)                                                          \
  void name parameters {                                                                                   \
    void(*real) parameters = GW_REAL(void(*) parameters, #name);                                           \
    gw_lock_given(lock);                                                                                   \
    real arguments;                                                                                        \
  }

/* Where a thread waits it may run tasks meanwhile, whose records lie inside. */
#define WAITING_WITH_TASKS(name, function, parameters, arguments)                                          \
  void name parameters {                                                                                   \
    void(*real) parameters = GW_REAL(void(*) parameters, #name);                                           \
    struct gw_record *r = gw_self ? gw_open(function, __builtin_return_address(0)) : NULL;                 \
    gw_depth++;                                                                                            \
    real arguments;                                                                                        \
    gw_depth--;                                                                                            \
    gw_close(r);                                                                                           \
  }

WAITING_WITH_TASKS(GOMP_barrier, F_omp_barrier, (void), ())
WAITING_WITH_TASKS(GOMP_loop_end, F_omp_implicit_barrier, (void), ())
WAITING_WITH_TASKS(GOMP_sections_end, F_omp_implicit_barrier, (void), ())
WAITING_WITH_TASKS(GOMP_taskwait, F_omp_taskwait, (void), ())
WAITING_WITH_TASKS(GOMP_taskwait_depend, F_omp_taskwait, (void **depend), (depend))
WAITING_WITH_TASKS(GOMP_taskgroup_end, F_omp_taskwait, (void), ())
WAITING_WITH_TASKS(GOMP_taskyield, F_omp_taskwait, (void), ())
TAKING(GOMP_critical_start, F_omp_critical, (void), (), &unnamed)
GIVING(GOMP_critical_end, (void), (), &unnamed)
TAKING(GOMP_critical_name_start, F_omp_critical, (void **name), (name), name)
GIVING(GOMP_critical_name_end, (void **name), (name), name)
TAKING(GOMP_atomic_start, F_omp_atomic, (void), (), &atomic)
GIVING(GOMP_atomic_end, (void), (), &atomic)
TAKING(omp_set_lock, F_omp_lock, (void *lock), (lock), lock)
GIVING(omp_unset_lock, (void *lock), (lock), lock)

void GOMP_ordered_start(void) {
  void (*real)(void) = GW_REAL(void (*)(void), "GOMP_ordered_start");
  struct gw_record *r = ENTER_BRIEF(F_omp_ordered);
  real();
  gw_leave_brief(r);
}

/* OMPT, as far as it is needed here; the numbers are those of the standard. */
union data {
  uint64_t value;
  void *pointer;
};
typedef int (*set_callback)(int, void (*)(void));
typedef void (*entry)(void);
enum { PARALLEL_BEGIN = 3, PARALLEL_END = 4, TASK_CREATE = 5, TASK_SCHEDULE = 6, IMPLICIT_TASK = 7,
       SYNC_REGION_WAIT = 16, MUTEX_RELEASED = 17, WORK = 20, SYNC_REGION = 23, MUTEX_ACQUIRE = 26, MUTEX_ACQUIRED = 27 };
enum { BEGIN = 1, END = 2 };
/* A thread waits for tasks, and may run some; other kinds of waiting are barriers. */
#define FOR_TASKS(kind) ((kind) == 5 || (kind) == 6)

static __thread struct {
  struct gw_record *part, *wait, *lock;
  int index, counted; /* counted: the lock that it asks for needs no record of its own */
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

/* Tasks that a thread has begun, each with the call in which it was waiting then. Of a task the runtime keeps where it
   was created, and whether it has begun. */
#define BEGUN (1ull << 63)
#define EXPLICIT (1ull << 62)
#define DEEPEST 1024
static __thread struct {
  struct gw_record *run, *wait;
  const void *caller;
} *tasks __attribute__((tls_model("initial-exec")));
static __thread int task_depth __attribute__((tls_model("initial-exec")));

#define CALLER(task) ((void *)(uintptr_t)((task)->value & 0xffffffffffffu))

static const void *runtime_base, *own_base; /* where the runtime's code and ours are loaded */
static __thread const void *taskloop __attribute__((tls_model("initial-exec"))); /* that this thread is making tasks of */

static const void *base_of(const void *address) {
  static __thread const void *last, *base __attribute__((tls_model("initial-exec")));
  Dl_info info;
  if (address != last) {
    base = dladdr(address, &info) ? info.dli_fbase : NULL;
    last = address;
  }
  return base;
}

/* Of a taskloop runtimes tell a place in their own code: look for who called that. */
static void work(int kind, int endpoint, union data *parallel, union data *task, uint64_t count, const void *caller) {
  enum { TASKLOOP = 7 };
  (void)parallel;
  (void)task;
  (void)count;
  if (kind != TASKLOOP) return;
  taskloop = NULL;
  if (endpoint != BEGIN) return;
  void *frames[16] = {(void *)caller};
  int found = base_of(caller) == runtime_base ? backtrace(frames, 16) : 1;
  for (int i = 0; i < found && !taskloop; i++) {
    const void *base = base_of(frames[i]);
    if (base != runtime_base && base != own_base) taskloop = frames[i];
  }
}

static void task_create(union data *parent, const void *frame, union data *task, int flags, int depends,
                        const void *caller) {
  (void)parent;
  (void)frame;
  (void)depends;
  if (!(flags & 4)) return;
  if (taskloop) caller = taskloop;
  else if (task_depth > 0 && task_depth < DEEPEST && (!caller || base_of(caller) == runtime_base))
    caller = tasks[task_depth - 1].caller; /* a task of the runtime's own, which makes some of the taskloop's */
  task->value = EXPLICIT | GW_CALLER(caller);
}

static void task_schedule(union data *before, int status, union data *next) {
  enum { COMPLETE = 1, CANCELLED = 3, DETACHED = 4 };
  int over = status == COMPLETE || status == CANCELLED || status == DETACHED; /* a detached one computes no more */
  if (before && before->value & BEGUN && over && task_depth > 0) {
    before->value = 0;
    if (--task_depth < DEEPEST) {
      gw_close_brief(tasks[task_depth].run);
      mine.wait = tasks[task_depth].wait;
    }
  }
  if (!next || !(next->value & EXPLICIT) || next->value & BEGUN) return;
  next->value |= BEGUN;
  gw_attach();
  if (!tasks && !(tasks = calloc(DEEPEST, sizeof *tasks))) return;
  if (task_depth < DEEPEST) {
    tasks[task_depth].run = gw_open(F_omp_task, CALLER(next));
    tasks[task_depth].wait = mine.wait;
    tasks[task_depth].caller = CALLER(next);
    mine.wait = NULL;
  }
  task_depth++;
}

static void sync_region(int kind, int endpoint, union data *parallel, union data *task, const void *caller) {
  (void)task;
  int ends_part = parallel && (kind == 9 || kind == 2) && !caller;
  if (FOR_TASKS(kind)) return; /* of a group of tasks that is all of it, not only the wait at its end */
  if (endpoint == BEGIN && mine.part && (kind == 9 || (ends_part && mine.index))) {
    gw_close(mine.part); /* the other threads hear of the end only when they are needed again */
    mine.part = NULL;
  } else if (endpoint == BEGIN && mine.part) {
    mine.wait = gw_open(kind == 2 || kind == 8 ? F_omp_implicit_barrier : F_omp_barrier, caller);
  } else if (endpoint == END && mine.wait) {
    gw_close(mine.wait);
    mine.wait = NULL;
  }
}

static void task_wait(int kind, int endpoint, union data *parallel, union data *task, const void *caller) {
  (void)parallel;
  (void)task;
  if (!FOR_TASKS(kind)) return;
  if (endpoint == BEGIN) mine.wait = gw_self ? gw_open(F_omp_taskwait, caller) : NULL;
  else if (mine.wait) {
    gw_close(mine.wait);
    mine.wait = NULL;
  }
}

/* Runtimes use these words for kinds of locks; what only tries to take one may never come to have it. */
enum { TEST_LOCK = 2, TEST_NEST_LOCK = 4, ORDERED = 7 };

static void mutex_acquire(int kind, unsigned hint, unsigned how, uint64_t id, const void *caller) {
  (void)hint;
  (void)how;
  static const unsigned functions[] = {F_omp_lock,     F_omp_lock,   F_omp_lock,   F_omp_lock, F_omp_lock,
                                       F_omp_critical, F_omp_atomic, F_omp_ordered};
  if (kind == TEST_LOCK || kind == TEST_NEST_LOCK || !gw_on || gw_depth || !gw_self) return;
  unsigned function = functions[kind >= 0 && kind <= ORDERED ? kind : 0];
  mine.counted = kind != ORDERED && gw_lock_counted(function, caller, (const void *)(uintptr_t)id);
  if (mine.counted) return;
  mine.lock = gw_enter_brief_at(function, caller, (const void *)UINTPTR_MAX);
  if (kind != ORDERED) gw_lock_awaited(mine.lock, (const void *)(uintptr_t)id);
}

static void mutex_acquired(int kind, uint64_t id, const void *caller) {
  (void)caller;
  if (mine.counted) gw_counted_lock_taken((const void *)(uintptr_t)id);
  else if (kind == ORDERED) gw_leave_brief(mine.lock);
  else gw_lock_taken(mine.lock, (const void *)(uintptr_t)id);
  mine.lock = NULL;
  mine.counted = 0;
}

static void mutex_released(int kind, uint64_t id, const void *caller) {
  (void)kind;
  (void)caller;
  gw_lock_given((const void *)(uintptr_t)id);
}

static int initialize(entry (*lookup)(const char *), int device, union data *data) {
  (void)device;
  (void)data;
  set_callback set = (set_callback)lookup("ompt_set_callback");
  if (!set) return 0;
  set(PARALLEL_BEGIN, (entry)parallel_begin);
  set(PARALLEL_END, (entry)parallel_end);
  set(IMPLICIT_TASK, (entry)implicit_task);
  runtime_base = base_of((const void *)lookup);
  own_base = base_of((const void *)initialize);
  set(TASK_CREATE, (entry)task_create);
  set(WORK, (entry)work);
  set(TASK_SCHEDULE, (entry)task_schedule);
  set(SYNC_REGION, (entry)sync_region);
  set(SYNC_REGION_WAIT, (entry)task_wait);
  set(MUTEX_ACQUIRE, (entry)mutex_acquire);
  set(MUTEX_ACQUIRED, (entry)mutex_acquired);
  set(MUTEX_RELEASED, (entry)mutex_released);
  uses_ompt = 1;
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
