/* Threads of the recorder, and its begin and end. */
#define _GNU_SOURCE
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int gw_on;
__thread struct gw_thread *gw_self __attribute__((tls_model("initial-exec")));
__thread int gw_depth __attribute__((tls_model("initial-exec")));
__thread void *gw_fortran_caller __attribute__((tls_model("initial-exec")));

int gw_unsettled;

#define BRIEF_NS 2000000 /* children of fork that live for less leave no files */

static char place[3900], prefix[4000]; /* of all processes of this host, and of this one */
static int threads, stopped;
static pid_t owner, parent; /* parent: of a child of fork, the one whose lines it adds to */
static uint64_t forked_ns; /* when a child of fork began, 0 for any other process */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define MOST_THREADS 4096
static struct gw_thread *attached[MOST_THREADS]; /* by their files */
static struct gw_thread *ended; /* whose files the next threads write on in: programs may make some for each step */
static pthread_key_t at_exit;

#ifndef GW_MPI_LIBRARY
#define GW_MPI_LIBRARY ""
#endif

static void *find(void *where, const char *name) {
  void *found = dlsym(where, name);
  if (!found && GW_MPI_LIBRARY[0]) { /* loaded for another library alone, as Python modules are */
    void *library = dlopen(GW_MPI_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, name);
  }
  return found;
}

void *gw_find(const char *name) { return find(RTLD_NEXT, name); }

void *gw_find_data(const char *name) { return find(RTLD_DEFAULT, name); } /* the program may hold a copy of its own */

void *gw_resolve(const char *name) {
  void *found = gw_find(name);
  if (!found) {
    fprintf(stderr, "gapwatch: %s is called, but nothing defines it\n", name);
    abort();
  }
  return found;
}

/* What the object at an address finds among the libraries that it was loaded with; NULL if that is the recorder, which
   depends on none. */
static void *find_from(const void *place, const char *name) {
  Dl_info object, own;
  if (!dladdr(place, &object) || !dladdr((void *)(uintptr_t)find_from, &own) || object.dli_fbase == own.dli_fbase)
    return NULL;
  void *library = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void *found = library ? dlsym(library, name) : NULL;
  if (library) dlclose(library);
  return found;
}

void *gw_resolve_for(const char *name, const void *caller, void **everywhere, struct gw_way *way) {
  static __thread const void *latest; /* of another name: for calls that compilers made jumps, which come from here */
  if (way->real && way->caller == caller) return way->real;
  void *found = gw_find(name);
  if (found) return *everywhere = found;
  found = find_from(caller, name);
  if (!found && latest) found = find_from(latest, name);
  *way = (struct gw_way){caller, found ? found : gw_resolve(name)};
  return (void *)(uintptr_t)(latest = way->real);
}

static int open_file(struct gw_file *file, const char *kind, int number) {
  char path[4200];
  snprintf(path, sizeof path, "%s.%d.%s", prefix, number, kind);
  return gw_file_open(file, path);
}

static struct gw_thread *take_ended(void) {
  pthread_mutex_lock(&lock);
  struct gw_thread *t = ended;
  if (t) ended = t->next;
  pthread_mutex_unlock(&lock);
  if (t) {
    t->previous = t->lone = NULL;
    t->slots_used = t->holding = 0;
  }
  return t;
}

static void keep_ended(struct gw_thread *t) {
  pthread_mutex_lock(&lock);
  t->next = ended;
  ended = t;
  pthread_mutex_unlock(&lock);
}

static void close_files(struct gw_thread *t) {
  gw_file_close(&t->records);
  gw_file_close(&t->samples);
  gw_file_close(&t->registers);
}

struct gw_thread *gw_attach(void) {
  if (gw_self || !gw_on || stopped) return gw_self;
  int saved = errno;
  gw_depth++;
  gw_settle(); /* memory alone is for the first thread of a child */
  struct gw_thread *t = take_ended();
  int again = t != NULL;
  if (!again) t = calloc(1, sizeof *t);
  t->number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
  t->tid = (pid_t)syscall(SYS_gettid);
  if (!again) t->file = t->number;
  if (again || open_file(&t->records, "records", t->number)) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", t->tid);
    gw_keep_descriptor(&t->schedstat, path, O_RDONLY);
    if (!t->number) {
      gw_tell_usage("begin");
      gw_tell_machine("begin");
    }
    t->begin_ns = t->last_ns = t->cpu_at_ns = gw_now();
    t->begin_cpu_ns = t->cpu_ns = gw_thread_cpu();
    t->live = 1;
    gw_tell("thread %d %d %llu %llu", t->number, t->tid, (unsigned long long)t->begin_ns,
            (unsigned long long)t->cpu_ns);
    if (again)
      gw_tell("stored %d %d %llu %llu", t->number, t->file,
              (unsigned long long)(t->records.used / sizeof(struct gw_record)),
              (unsigned long long)(t->samples.used / sizeof(struct gw_sample)));
    else if (open_file(&t->samples, "samples", t->number)) open_file(&t->registers, "registers", t->number);
    gw_self = t;
    if (t->file < MOST_THREADS) attached[t->file] = t;
    pthread_setspecific(at_exit, t);
    gw_state(t, t->begin_ns);
    gw_samples_begin(t);
  } else {
    free(t);
    t = NULL;
  }
  gw_depth--;
  errno = saved;
  return t;
}

void gw_detach(void) {
  struct gw_thread *t = gw_self;
  if (!t || !t->live || owner != getpid()) return;
  gw_depth++;
  t->live = 0;
  gw_samples_end(t);
  uint64_t now = gw_now();
  gw_state(t, now);
  gw_tell("thread-end %d %llu %llu", t->number, (unsigned long long)now, (unsigned long long)gw_thread_cpu());
  gw_self = NULL;
  gw_drop_descriptor(&t->schedstat);
  if (stopped) close_files(t);
  else keep_ended(t);
  gw_depth--;
}

static void thread_ended(void *unused) {
  (void)unused;
  gw_detach();
}

void gw_start(int rank, int ranks) {
  const char *folder = getenv("GAPWATCH_RECORDING"), *limit = getenv("GAPWATCH_RECORDING_LIMIT");
  char host[256] = "host";
  if (!folder || stopped) return;
  pthread_mutex_lock(&lock);
  if (gw_on) { /* began without a rank, before MPI was loaded */
    if (rank >= 0) gw_tell("rank %d %d", rank, ranks);
    pthread_mutex_unlock(&lock);
    return;
  }
  int saved = errno;
  gw_depth++;
  if (limit && atoll(limit) > 0) gw_limit = (uint64_t)atoll(limit);
  gethostname(host, sizeof host - 1);
  snprintf(place, sizeof place, "%s/%s", folder, host);
  snprintf(prefix, sizeof prefix, "%s.%d", place, (int)getpid());
  char path[4100];
  snprintf(path, sizeof path, "%s.process", prefix);
  owner = getpid();
  if (gw_process_open(path)) {
    gw_tell_process(rank, ranks);
    gw_tell_objects();
    gw_ticks_begin();
    gw_sampling_prepare();
    gw_python_prepare();
    pthread_key_create(&at_exit, thread_ended);
    gw_on = 1;
  }
  gw_depth--;
  errno = saved;
  pthread_mutex_unlock(&lock);
  if (!gw_on) return;
  struct gw_thread *t = gw_attach();
  gw_depth++;
  if (t) gw_tell_prices(t);
  gw_depth--;
}

/* Say what other threads have used up to now; their files stay as they are, since they may still write. */
static void tell_others(void) {
  for (int i = 0; i < threads && i < MOST_THREADS; i++) { /* no file has a higher number */
    struct gw_thread *t = __atomic_load_n(&attached[i], __ATOMIC_RELAXED);
    struct timespec used;
    clockid_t clock = (clockid_t)((~(unsigned)(t ? t->tid : 0)) << 3 | 6); /* of a thread: clock_gettime(2) */
    if (t && t->live && !clock_gettime(clock, &used))
      gw_tell("thread-end %d %llu %llu", t->number, (unsigned long long)gw_now(),
              (unsigned long long)used.tv_sec * 1000000000u + (unsigned long long)used.tv_nsec);
  }
}

void gw_stop(void) {
  if (!gw_on && !gw_full) return;
  if (stopped || owner != getpid()) return;
  int saved = errno;
  gw_depth++;
  if (!gw_unsettled || !gw_is_brief()) {
    gw_settle();
    stopped = 1;
    gw_detach();
    for (struct gw_thread *t; (t = take_ended());) close_files(t);
    tell_others();
    gw_tell_usage("end");
    if (!forked_ns) gw_tell_machine("end");
    gw_tell_children();
    gw_tell_objects();
    gw_tell("end");
  }
  stopped = 1;
  gw_on = 0;
  gw_depth--;
  errno = saved;
}

static void abandon(void) {
  gw_on = 0;
  stopped = 1;
  gw_self = NULL;
  gw_process_part(NULL);
}

int gw_is_brief(void) { return gw_now() - forked_ns < BRIEF_NS; }

void gw_settle(void) {
  if (!gw_unsettled) return;
  gw_unsettled = 0;
  gw_process_settle(parent, forked_ns);
  gw_tell("thread 0 %d %llu %llu", (int)attached[0]->tid, (unsigned long long)forked_ns,
          (unsigned long long)attached[0]->begin_cpu_ns);
  gw_tell_usage("begin"); /* of 2 ms at the most */
  gw_tell_affinity();
  gw_keep_descriptor(&attached[0]->schedstat, "/proc/self/schedstat", O_RDONLY);
  gw_file_settle(&attached[0]->records);
  gw_file_settle(&attached[0]->samples);
  gw_file_settle(&attached[0]->registers);
}

static void part_file(struct gw_file *file, const char *kind) {
  char path[4200];
  snprintf(path, sizeof path, "%s.0.%s", prefix, kind);
  gw_file_part(file, path);
}

/* Go on as the first thread of a child, in memory until the child settles. What a child forks that has no files itself
   adds to the lines of its parent's parent: that may be gone, and so may the child. */
static void part(struct gw_thread *t) {
  char path[4100];
  for (int i = 0; i < threads && i < MOST_THREADS; i++) attached[i] = NULL;
  ended = NULL;
  if (!gw_unsettled) parent = owner;
  owner = getpid();
  snprintf(prefix, sizeof prefix, "%s.%d", place, (int)owner);
  snprintf(path, sizeof path, "%s.process", prefix);
  gw_process_part(path);
  gw_records_part();
  gw_unsettled = 1;
  part_file(&t->records, "records");
  part_file(&t->samples, "samples");
  part_file(&t->registers, "registers");
  if (!t->records.path) {
    abandon();
    return;
  }
  attached[0] = t;
  threads = 1;
  t->number = t->file = t->timed = 0;
  t->previous = t->lone = NULL;
  t->slots_used = t->holding = 0;
  t->tid = owner;
  gw_drop_descriptor(&t->schedstat);
  t->begin_ns = t->last_ns = t->cpu_at_ns = t->state_ns = forked_ns = gw_now();
  t->begin_cpu_ns = t->cpu_ns = gw_thread_cpu();
  gw_state(t, t->begin_ns);
  ((struct gw_record *)t->records.base)->size = 0; /* run-queue delay */
  gw_samples_begin(t);
}

/* What a library forks for itself inside of a call is no part of the program, and what is not recorded has no children. */
static void forked(void) {
  if (!owner) return; /* nothing began: a daemon of MPI forks before MPI_Init */
  struct gw_thread *t = gw_self;
  lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  gw_python_part();
  if (!gw_on || stopped || !t || !t->live || (gw_depth && !gw_forking)) {
    abandon();
    return;
  }
  int saved = errno;
  gw_depth = 1;
  part(t);
  gw_depth = gw_forking = 0;
  errno = saved;
}

__attribute__((constructor)) static void loaded(void) {
  pthread_atfork(NULL, NULL, forked);
  if (!getenv("GAPWATCH_RECORDING")) return;
  gw_keep_environment();
  if (gw_is_launched() || gw_launches() || dlsym(RTLD_NEXT, "PMPI_Init")) return; /* MPI_Init begins it, if that comes */
  gw_start(-1, 1);
}

__attribute__((destructor)) static void unloaded(void) { gw_stop(); }
