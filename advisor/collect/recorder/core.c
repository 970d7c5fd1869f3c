/* Threads, clocks and records of the recorder, and its begin and end. */
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

#define UNREAD_NS 50000   /* the CPU clock is read on entry where it has not been read for so long, */
#define LONG_CALL_NS 10000 /* and behind a call that took so long */
#define DISPLACED_NS 100000 /* so much time without the processor is looked into */
#define STATE_NS 20000000
#define JOINED_NS 5000

int gw_on;
__thread struct gw_thread *gw_self __attribute__((tls_model("initial-exec")));
__thread int gw_depth __attribute__((tls_model("initial-exec")));
__thread void *gw_fortran_caller __attribute__((tls_model("initial-exec")));

static char prefix[4000];
static int threads, stopped;
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#define MOST_THREADS 4096
static struct gw_thread *attached[MOST_THREADS]; /* by their files */
static struct gw_thread *ended; /* whose files the next threads write on in: programs may make some for each step */
static pthread_key_t at_exit;

uint64_t gw_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t gw_thread_cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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
}

struct gw_thread *gw_attach(void) {
  if (gw_self || !gw_on || stopped) return gw_self;
  int saved = errno;
  gw_depth++;
  struct gw_thread *t = take_ended();
  int again = t != NULL;
  if (!again) t = calloc(1, sizeof *t);
  t->number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
  t->tid = (pid_t)syscall(SYS_gettid);
  if (!again) t->file = t->number;
  if (again || open_file(&t->records, "records", t->number)) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", t->tid);
    t->schedstat = open(path, O_RDONLY | O_CLOEXEC);
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
    else open_file(&t->samples, "samples", t->number);
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
  if (t->schedstat >= 0) close(t->schedstat);
  if (stopped) close_files(t);
  else keep_ended(t);
  gw_depth--;
}

struct gw_record *gw_append(struct gw_thread *t) {
  struct gw_file *file = &t->records;
  if (__builtin_expect(file->used + sizeof(struct gw_record) > file->room, 0)) {
    int saved = errno;
    int grown = gw_grow(file, sizeof(struct gw_record));
    if (!grown && gw_on) {
      gw_on = 0;
      gw_tell("full %s %llu", gw_full == 2 ? "disk" : "limit", (unsigned long long)gw_now());
    }
    errno = saved;
    if (!grown) return NULL;
  }
  struct gw_record *record = (struct gw_record *)(file->base + file->used);
  file->used += sizeof *record;
  t->slots_used = 0; /* what comes behind it is folded into records of its own */
  return record;
}

static inline uint64_t rising(struct gw_thread *t) {
  uint64_t now = gw_now();
  if (now <= t->last_ns) now = t->last_ns + 1;
  return t->last_ns = now;
}

/* Read the thread's CPU clock; where the processor was taken away for long, write down what else the kernel knows. */
static uint64_t read_cpu(struct gw_thread *t, uint64_t now) {
  uint64_t cpu = gw_thread_cpu();
  int64_t lost = (int64_t)((now - t->cpu_at_ns) - (cpu - t->cpu_ns));
  t->cpu_ns = cpu;
  t->cpu_at_ns = now;
  t->lost_ns = lost > 0 ? (uint64_t)lost : 0;
  if (lost > DISPLACED_NS || now - t->state_ns > STATE_NS) gw_state(t, now);
  return cpu;
}

/* What a thread was without a core since its CPU clock was last read; that reading stays the last one, as the next
   record has to tell of the time, too. */
uint64_t gw_lost(const struct gw_thread *t, uint64_t now) {
  int64_t lost = (int64_t)((now - t->cpu_at_ns) - (gw_thread_cpu() - t->cpu_ns));
  return lost > 0 ? (uint64_t)lost : 0;
}

/* Write a state: run-queue delay, switches, page faults, the core. */
void gw_state(struct gw_thread *t, uint64_t now) {
  char text[96];
  struct rusage u;
  ssize_t length = t->schedstat >= 0 ? syscall(SYS_pread64, t->schedstat, text, sizeof text - 1, 0) : -1;
  struct gw_record *record = gw_append(t);
  if (!record) return;
  unsigned long long ran = 0, queued = 0;
  text[length > 0 ? length : 0] = 0;
  if (sscanf(text, "%llu %llu", &ran, &queued) == 2) record->size = (int64_t)queued;
  else record->size = -1;
  getrusage(RUSAGE_THREAD, &u);
  record->start_ns = record->end_ns = now;
  record->cpu_start_ns = gw_thread_cpu();
  record->cpu_end_ns = (uint64_t)u.ru_minflt << 32 | (uint32_t)u.ru_majflt;
  record->partner = sched_getcpu();
  record->tag = (int32_t)u.ru_nvcsw;
  record->request = (uint32_t)u.ru_nivcsw;
  __atomic_store_n((unsigned char *)record + 22, GW_STATE, __ATOMIC_RELEASE);
  t->state_ns = now;
  t->previous = NULL;
}

/* Begin a record; a `brief` one may leave those open into which others like it are folded. */
static inline struct gw_record *begin(unsigned function, const void *caller, int brief) {
  struct gw_thread *t = gw_self;
  if (__builtin_expect(!t, 0) && !(t = gw_attach())) return NULL;
  if (__builtin_expect(!gw_named[function], 0)) gw_tell_function(function);
  uint64_t now = rising(t), cpu = 0;
  if (now - t->cpu_at_ns > UNREAD_NS) cpu = read_cpu(t, now);
  unsigned slots = t->slots_used;
  struct gw_record *record = gw_append(t);
  if (!record) return NULL;
  if (brief) t->slots_used = slots;
  record->start_ns = now;
  record->cpu_start_ns = cpu;
  record->size = -1;
  record->partner = GW_NOBODY;
  record->function = (uint16_t)function;
  uint64_t python = gw_python(NULL, 0);
  record->caller = python ? python : (uint64_t)(uintptr_t)caller & 0xffffffffffffu;
  __atomic_store_n((unsigned char *)record + 22, GW_CALL, __ATOMIC_RELEASE);
  return record;
}

/* End a record with a call that began at `since`: of joined calls the last one, which may be short. */
static inline void end(struct gw_record *record, uint64_t since, uint64_t now) {
  struct gw_thread *t = gw_self;
  int read = now - since > LONG_CALL_NS || (since != record->start_ns && now - t->cpu_at_ns > UNREAD_NS);
  record->cpu_end_ns = read ? read_cpu(t, now) : 0;
  __atomic_store_n(&record->end_ns, now, __ATOMIC_RELEASE);
  t->slots_used = 0;
  t->previous = record;
}

static inline struct gw_record *enter(unsigned function, const void *caller, int brief) {
  if (gw_depth || !gw_on) return NULL;
  gw_depth = 1;
  struct gw_record *record = begin(function, caller, brief);
  if (!record) gw_depth = 0;
  return record;
}

struct gw_record *gw_enter(unsigned function, const void *caller) { return enter(function, caller, 0); }

struct gw_record *gw_enter_brief(unsigned function, const void *caller) { return enter(function, caller, 1); }

static void leave(struct gw_record *record, uint64_t since, uint64_t now) {
  int saved = errno;
  end(record, since, now);
  gw_depth = 0;
  errno = saved;
}

void gw_leave(struct gw_record *record) {
  if (record) leave(record, record->start_ns, rising(gw_self));
}

struct gw_record *gw_leave_brief(struct gw_record *record) {
  struct gw_thread *t = gw_self;
  if (!record) return NULL;
  uint64_t now = rising(t);
  int alone = now - record->start_ns > LONG_CALL_NS || (record->cpu_start_ns && t->lost_ns > LONG_CALL_NS) ||
              (char *)(record + 1) != t->records.base + t->records.used;
  struct gw_record *folded = alone ? NULL : gw_fold(t, record, now);
  if (!folded) {
    leave(record, record->start_ns, now);
    return record;
  }
  gw_depth = 0;
  return folded;
}

void gw_leave_idle(struct gw_record *record) {
  if (!record) return;
  struct gw_thread *t = gw_self;
  struct gw_record *before = record - 1;
  if (t->previous == before && before->kind == GW_CALL && before->function == record->function &&
      before->caller == record->caller && !before->event && (char *)record == t->records.base + t->records.used - 64 &&
      record->start_ns - before->end_ns < JOINED_NS) {
    uint64_t since = record->start_ns;
    before->tag++; /* so many more calls in this one */
    record->kind = 0;
    memset(record, 0, sizeof *record);
    t->records.used -= sizeof *record;
    leave(before, since, rising(t));
  } else gw_leave_brief(record);
}

struct gw_record *gw_open(unsigned function, const void *caller) {
  if (gw_depth || !gw_on) return NULL;
  gw_depth = 1;
  struct gw_record *record = begin(function, caller, 0);
  gw_depth = 0;
  return record;
}

void gw_close(struct gw_record *record) {
  if (!record || !gw_self) return;
  int depth = gw_depth;
  gw_depth = 1;
  end(record, record->start_ns, rising(gw_self));
  gw_depth = depth;
}

struct gw_record *gw_note(unsigned kind, unsigned event) {
  struct gw_thread *t = gw_self;
  if (!t || !gw_on) return NULL;
  uint64_t now = rising(t), cpu = 0;
  if (kind != GW_MESSAGE && now - t->cpu_at_ns > UNREAD_NS) cpu = read_cpu(t, now);
  struct gw_record *record = gw_append(t);
  if (!record) return NULL;
  record->start_ns = record->end_ns = now;
  record->cpu_start_ns = cpu;
  record->size = -1;
  record->partner = GW_NOBODY;
  record->event = event;
  __atomic_store_n((unsigned char *)record + 22, kind, __ATOMIC_RELEASE);
  t->previous = NULL;
  return record;
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
  snprintf(prefix, sizeof prefix, "%s/%s.%d", folder, host, (int)getpid());
  char path[4100];
  snprintf(path, sizeof path, "%s.process", prefix);
  owner = getpid();
  if (gw_process_open(path)) {
    gw_tell_process(rank, ranks);
    gw_tell_objects();
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
  stopped = 1;
  gw_depth++;
  gw_detach();
  gw_on = 0;
  for (struct gw_thread *t; (t = take_ended());) close_files(t);
  tell_others();
  gw_tell_usage("end");
  gw_tell_machine("end");
  gw_tell_objects();
  gw_tell("end");
  gw_depth--;
  errno = saved;
}

void gw_abandon(void) {
  gw_on = 0;
  stopped = 1;
  gw_self = NULL;
  gw_process_abandon();
}

__attribute__((constructor)) static void loaded(void) {
  pthread_atfork(NULL, NULL, gw_abandon);
  if (!getenv("GAPWATCH_RECORDING")) return;
  gw_posix_begin();
  if (gw_is_launched() || gw_launches() || dlsym(RTLD_NEXT, "PMPI_Init")) return; /* MPI_Init begins it, if that comes */
  gw_start(-1, 1);
}

__attribute__((destructor)) static void unloaded(void) { gw_stop(); }
