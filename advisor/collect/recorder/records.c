/* Clocks and records of the recorder. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#define UNREAD_NS 50000   /* the CPU clock is read on entry where it has not been read for so long */
#define DISPLACED_NS 100000 /* so much time without the processor is looked into */
#define STATE_NS 20000000
#define JOINED_NS 5000

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

static uint64_t first_ns, first_ticks; /* when the counter was read first */

void gw_ticks_begin(void) {
#ifdef __x86_64__
  unsigned a, b, c, d;
  enum { POWER = 0x80000007, INVARIANT = 1 << 8 }; /* it counts at one rate, whatever the core does */
  if (!__get_cpuid(POWER, &a, &b, &c, &d) || !(d & INVARIANT)) return;
  first_ns = gw_now();
  first_ticks = gw_ticks();
#endif
}

double gw_tick_ns(uint64_t now) {
  return first_ticks ? (double)(now - first_ns) / (double)(gw_ticks() - first_ticks) : 0;
}

struct gw_record *gw_append(struct gw_thread *t) {
  struct gw_file *file = &t->records;
  if (__builtin_expect(file->used + sizeof(struct gw_record) > file->room, 0)) {
    int saved = errno;
    int grown = gw_grow(file, sizeof(struct gw_record));
    if (!grown && gw_on) {
      gw_on = 0;
      static const char *const why[] = {"limit", "limit", "disk", "memory"};
      gw_tell("full %s %llu", why[gw_full], (unsigned long long)gw_now());
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
  ssize_t length = gw_is_ours(&t->schedstat) ? syscall(SYS_pread64, t->schedstat.fd, text, sizeof text - 1, 0) : -1;
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

/* Write down a call in a new record, all of which is zero; when it is readable it is a whole one. */
static inline void describe_call(struct gw_record *record, unsigned function, uint64_t caller, uint64_t start) {
  record->start_ns = start;
  record->size = -1;
  record->partner = GW_NOBODY;
  record->function = (uint16_t)function;
  record->caller = caller;
  __atomic_store_n((unsigned char *)record + 22, GW_CALL, __ATOMIC_RELEASE);
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
  record->cpu_start_ns = cpu;
  uint64_t python = gw_python(NULL, 0);
  describe_call(record, function, python ? python : GW_CALLER(caller), now);
  return record;
}

/* End a record with a call that began at `since`: of joined calls the last one, which may be short. */
static inline void end(struct gw_record *record, uint64_t since, uint64_t now) {
  struct gw_thread *t = gw_self;
  int read = now - since > GW_LONG_CALL_NS || (since != record->start_ns && now - t->cpu_at_ns > UNREAD_NS);
  record->cpu_end_ns = read ? read_cpu(t, now) : 0;
  __atomic_store_n(&record->end_ns, now, __ATOMIC_RELEASE);
  t->slots_used = 0;
  t->previous = record;
}

/* The call that a thread is in, and the frame of its wrapper. */
static __thread struct {
  struct gw_record *record;
  const void *frame;
} entered __attribute__((tls_model("initial-exec")));

/* Whether the call that a thread was in was left without a return, by a jump out of a signal handler or an exception:
   what is called inside of it has frames below its own. */
static int is_abandoned(const void *frame) {
  if (!entered.record || frame < entered.frame) return 0;
  if (gw_self) __atomic_store_n(&entered.record->end_ns, rising(gw_self), __ATOMIC_RELEASE);
  entered.record = NULL;
  gw_depth = 0;
  return 1;
}

void gw_records_part(void) { entered.record = NULL; }

static inline struct gw_record *enter(unsigned function, const void *caller, const void *frame, int brief) {
  if (!gw_on || (gw_depth && !is_abandoned(frame))) return NULL;
  gw_depth = 1;
  struct gw_record *record = begin(function, caller, brief);
  if (!record) gw_depth = 0;
  entered.record = record;
  entered.frame = frame;
  return record;
}

struct gw_record *gw_enter_at(unsigned function, const void *caller, const void *frame) {
  return enter(function, caller, frame, 0);
}

struct gw_record *gw_enter_brief_at(unsigned function, const void *caller, const void *frame) {
  return enter(function, caller, frame, 1);
}

static void leave(struct gw_record *record, uint64_t since, uint64_t now) {
  int saved = errno;
  end(record, since, now);
  entered.record = NULL;
  gw_depth = 0;
  errno = saved;
}

void gw_leave(struct gw_record *record) {
  if (record) leave(record, record->start_ns, rising(gw_self));
}

void gw_returned(struct gw_record *record) {
  if (record) rising(gw_self);
}

void gw_leave_returned(struct gw_record *record) {
  if (record) leave(record, record->start_ns, ++gw_self->last_ns);
}

static struct gw_record *leave_brief(struct gw_record *record, uint64_t now) {
  struct gw_thread *t = gw_self;
  int alone = now - record->start_ns > GW_LONG_CALL_NS || (record->cpu_start_ns && t->lost_ns > GW_LONG_CALL_NS) ||
              (char *)(record + 1) != t->records.base + t->records.used;
  struct gw_record *folded = alone ? NULL : gw_fold(t, record, now);
  if (!folded) {
    leave(record, record->start_ns, now);
    return record;
  }
  entered.record = NULL;
  gw_depth = 0;
  return folded;
}

struct gw_record *gw_record_returned(const struct gw_record *like, uint64_t took) {
  struct gw_thread *t = gw_self;
  uint64_t earliest = t->last_ns + 1, now = rising(t);
  struct gw_record *record = gw_append(t);
  if (!record) return NULL;
  record->request = like->request;
  describe_call(record, like->function, like->caller, now - earliest > took ? now - took : earliest);
  end(record, record->start_ns, now);
  return record;
}

struct gw_record *gw_leave_brief(struct gw_record *record) {
  return record ? leave_brief(record, rising(gw_self)) : NULL;
}

void gw_leave_idle(struct gw_record *record) {
  if (!record) return;
  struct gw_thread *t = gw_self;
  uint64_t now = ++t->last_ns;
  struct gw_record *before = record - 1;
  if (t->previous == before && before->kind == GW_CALL && before->function == record->function &&
      before->caller == record->caller && !before->event && (char *)record == t->records.base + t->records.used - 64 &&
      record->start_ns - before->end_ns < JOINED_NS) {
    uint64_t since = record->start_ns;
    before->tag++; /* so many more calls in this one */
    record->kind = 0;
    memset(record, 0, sizeof *record);
    t->records.used -= sizeof *record;
    leave(before, since, now);
  } else leave_brief(record, now);
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
  uint64_t now = kind == GW_MESSAGE ? ++t->last_ns : rising(t), cpu = 0; /* messages end with their call */
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
