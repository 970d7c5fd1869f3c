/* Threads of POSIX: their begin and end, and where they wait for each other. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "posix_numbers.h"

#define LONG_NS 10000

/* Whether code of a runtime library of OpenMP calls: how that parks its threads is no waiting of the program. */
static int is_runtime(const void *caller) {
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  return strstr(info.dli_fname, "libomp") || strstr(info.dli_fname, "libiomp") || strstr(info.dli_fname, "libgomp");
}

/* End a call that a library made for the program, as that of C++ does for its threads: the program's own line counts. Who
   called is looked for where the call took long; that of a short one is that of another one like it. */
static void place(struct gw_record *r) {
  if (gw_now() - r->start_ns > LONG_NS) r->caller = gw_own_caller(r->caller);
}

static void leave_at(struct gw_record *r) {
  if (r) place(r);
  gw_leave(r);
}

static void leave_brief_at(struct gw_record *r) {
  if (r) place(r);
  gw_leave_brief(r);
}

/* The interpreter of Python waits for its own lock by conditions and a mutex, and for nothing else by these. */
static unsigned of_interpreter(unsigned function, const void *caller) {
  int asked = gw_on && gw_self && !gw_depth && function >= F_pthread_mutex_lock && function <= F_pthread_cond_timedwait;
  return asked && gw_is_interpreter(caller) ? F_python_gil : function;
}

#define ENTER_WAIT(function) \
  (is_runtime(__builtin_return_address(0)) ? NULL : ENTER(of_interpreter(function, __builtin_return_address(0))))

struct start {
  void *(*routine)(void *);
  int (*routine_of_c)(void *);
  void *argument;
  uint64_t created_ns;
};

/* Threads that are created one after the other may begin in any order. */
static void attach_created(uint64_t created_ns) {
  struct gw_thread *t = gw_attach(); /* detached by the destructor of its key */
  if (t) gw_tell("created %d %llu", t->number, (unsigned long long)created_ns);
}

static void *run(void *given) {
  struct start start = *(struct start *)given;
  free(given);
  attach_created(start.created_ns);
  return start.routine(start.argument);
}

static int run_of_c(void *given) {
  struct start start = *(struct start *)given;
  free(given);
  attach_created(start.created_ns);
  return start.routine_of_c(start.argument);
}

static struct start *keep_start(struct start start) {
  gw_settle();
  struct start *kept = malloc(sizeof *kept);
  *kept = start;
  return kept;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))gw_resolve("pthread_create");
  struct gw_record *r = gw_enter(F_pthread_create, __builtin_return_address(0));
  if (!r) return real(thread, attributes, routine, argument); /* helpers of libraries */
  struct start *start = keep_start((struct start){.routine = routine, .argument = argument, .created_ns = r->start_ns});
  int code = real(thread, attributes, run, start);
  if (code) free(start);
  gw_leave(r);
  return code;
}

int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
  static int (*real)(thrd_t *, thrd_start_t, void *);
  if (!real) real = (int (*)(thrd_t *, thrd_start_t, void *))gw_resolve("thrd_create");
  struct gw_record *r = gw_enter(F_thrd_create, __builtin_return_address(0));
  if (!r) return real(thread, routine, argument);
  struct start *start = keep_start((struct start){.routine_of_c = routine, .argument = argument, .created_ns = r->start_ns});
  int code = real(thread, run_of_c, start);
  if (code != thrd_success) free(start);
  gw_leave(r);
  return code;
}

#define WAITING(name, parameters, arguments)                      \
  int name parameters {                                           \
    static int(*real) parameters;                                 \
    if (!real) real = (int(*) parameters)gw_resolve(#name);       \
    struct gw_record *r = ENTER(F_##name);                        \
    int code = real arguments;                                    \
    leave_at(r);                                                  \
    return code;                                                  \
  }

WAITING(pthread_join, (pthread_t thread, void **result), (thread, result))
WAITING(pthread_barrier_wait, (pthread_barrier_t *barrier), (barrier))
WAITING(thrd_join, (thrd_t thread, int *result), (thread, result))

/* Of locks and semaphores, which a call of `trying` may get at once, only those are recorded that have to be waited for. */
#define CONTENDED(name, parameters, arguments, trying, first, is_taken)                                     \
  int name parameters {                                                                                     \
    static int(*real) parameters, (*try)(__typeof__(first));                                                \
    if (!real) {                                                                                            \
      try = (int (*)(__typeof__(first)))gw_resolve(#trying);                                                \
      real = (int(*) parameters)gw_resolve(#name);                                                          \
    }                                                                                                       \
    if (!gw_on || gw_depth || !gw_self) return real arguments;                                              \
    int found = try(first);                                                                                 \
    if (!(is_taken)) return found;                                                                          \
    const void *caller = __builtin_return_address(0);                                                       \
    struct gw_record *r = is_runtime(caller) ? NULL : ENTER_BRIEF(of_interpreter(F_##name, caller));        \
    if (r) r->request = 1; /* contended */                                                                  \
    int code = real arguments;                                                                              \
    leave_brief_at(r);                                                                                      \
    return code;                                                                                            \
  }
#define MUTEX (pthread_mutex_t *mutex)
#define RWLOCK (pthread_rwlock_t *lock)

CONTENDED(pthread_mutex_lock, MUTEX, (mutex), pthread_mutex_trylock, mutex, found == EBUSY)
CONTENDED(pthread_rwlock_rdlock, RWLOCK, (lock), pthread_rwlock_tryrdlock, lock, found == EBUSY)
CONTENDED(pthread_rwlock_wrlock, RWLOCK, (lock), pthread_rwlock_trywrlock, lock, found == EBUSY)
CONTENDED(mtx_lock, (mtx_t *mutex), (mutex), mtx_trylock, mutex, found == thrd_busy)
CONTENDED(sem_wait, (sem_t *semaphore), (semaphore), sem_trywait, semaphore, found)
CONTENDED(sem_timedwait, (sem_t *semaphore, const struct timespec *until), (semaphore, until), sem_trywait, semaphore,
          found)
CONTENDED(sem_clockwait, (sem_t *semaphore, clockid_t clock, const struct timespec *until), (semaphore, clock, until),
          sem_trywait, semaphore, found)

/* The C library has two versions of these, and the plain look-up may give the old one. */
static void *resolve_condition(const char *name) {
  void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return found ? found : gw_resolve(name);
}

#define CONDITION(name, parameters, arguments)                             \
  int name parameters {                                                    \
    static int(*real) parameters;                                          \
    if (!real) real = (int(*) parameters)resolve_condition(#name);         \
    struct gw_record *r = ENTER_WAIT(F_##name);                            \
    int code = real arguments;                                             \
    leave_at(r);                                                           \
    return code;                                                           \
  }

CONDITION(pthread_cond_wait, (pthread_cond_t *condition, pthread_mutex_t *mutex), (condition, mutex))
CONDITION(pthread_cond_timedwait, (pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until),
          (condition, mutex, until))
CONDITION(pthread_cond_clockwait,
          (pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
          (condition, mutex, clock, until))
CONDITION(cnd_wait, (cnd_t *condition, mtx_t *mutex), (condition, mutex))
CONDITION(cnd_timedwait, (cnd_t *condition, mtx_t *mutex, const struct timespec *until), (condition, mutex, until))

/* Futures, latches and other things of C++ wait by system calls of their own. */
long syscall(long number, ...) {
  static long (*real)(long, ...);
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (!real) real = (long (*)(long, ...))gw_resolve("syscall");
  int operation = (int)a[1] & FUTEX_CMD_MASK;
  int waits = number == SYS_futex && (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET);
  struct gw_record *r = waits ? ENTER_WAIT(F_futex_wait) : NULL;
  long code = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  leave_at(r);
  return code;
}
