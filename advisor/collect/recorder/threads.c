/* Threads of POSIX: their begin and end, and where they wait for each other. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "posix_numbers.h"

/* Whether code of a runtime library of OpenMP calls: how that parks its threads is no waiting of the program. */
static int is_runtime(const void *caller) {
  Dl_info info;
  if (!dladdr(caller, &info) || !info.dli_fname) return 0;
  return strstr(info.dli_fname, "libomp") || strstr(info.dli_fname, "libiomp") || strstr(info.dli_fname, "libgomp");
}

#define ENTER_WAIT(function) (is_runtime(__builtin_return_address(0)) ? NULL : ENTER(function))

struct start {
  void *(*routine)(void *);
  void *argument;
};

static void *run(void *given) {
  struct start start = *(struct start *)given;
  free(given);
  gw_attach(); /* detached by the destructor of its key */
  return start.routine(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (!real) real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))gw_resolve("pthread_create");
  struct gw_record *r = gw_enter(F_pthread_create, __builtin_return_address(0));
  if (!r) return real(thread, attributes, routine, argument); /* helpers of libraries */
  struct start *start = malloc(sizeof *start);
  *start = (struct start){routine, argument};
  int code = real(thread, attributes, run, start);
  if (code) free(start);
  gw_leave(r);
  return code;
}

#define WAITING(name, parameters, arguments)                                                  \
  int name parameters {                                                                       \
    static int(*real) parameters;                                                             \
    if (!real) real = (int(*) parameters)gw_resolve(#name);                                   \
    struct gw_record *r = ENTER(F_##name); \
    int code = real arguments;                                                                \
    gw_leave(r);                                                                              \
    return code;                                                                              \
  }

WAITING(pthread_join, (pthread_t thread, void **result), (thread, result))
WAITING(pthread_barrier_wait, (pthread_barrier_t *barrier), (barrier))

/* A mutex is recorded only where it has to be waited for. */
int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static int (*real)(pthread_mutex_t *), (*try)(pthread_mutex_t *);
  if (!real) {
    try = (int (*)(pthread_mutex_t *))gw_resolve("pthread_mutex_trylock");
    real = (int (*)(pthread_mutex_t *))gw_resolve("pthread_mutex_lock");
  }
  if (!gw_on || gw_depth || !gw_self) return real(mutex);
  int found = try(mutex);
  if (found != EBUSY) return found;
  struct gw_record *r = is_runtime(__builtin_return_address(0)) ? NULL : ENTER_BRIEF(F_pthread_mutex_lock);
  if (r) r->request = 1; /* contended */
  int code = real(mutex);
  gw_leave_brief(r);
  return code;
}

/* The C library has two versions of these, and the plain look-up may give the old one. */
static void *resolve_condition(const char *name) {
  void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return found ? found : gw_resolve(name);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *);
  if (!real) real = (int (*)(pthread_cond_t *, pthread_mutex_t *))resolve_condition("pthread_cond_wait");
  struct gw_record *r =
      ENTER_WAIT(F_pthread_cond_wait);
  int code = real(condition, mutex);
  gw_leave(r);
  return code;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!real)
    real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))resolve_condition(
        "pthread_cond_timedwait");
  struct gw_record *r =
      ENTER_WAIT(F_pthread_cond_timedwait);
  int code = real(condition, mutex, until);
  gw_leave(r);
  return code;
}
