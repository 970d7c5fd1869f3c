/* Samples: where each thread computes, by a timer on its CPU clock. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define PER_SECOND 250
#define FRAMES 32

static uintptr_t text_begin, text_end; /* code of the program itself */
static int ready, period_ns = 1000000000 / PER_SECOND;

static int look(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size;
  (void)unused;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    text_begin = info->dlpi_addr + part->p_vaddr;
    text_end = text_begin + part->p_memsz;
  }
  return 1; /* the first object is the program */
}

/* Where the code of the program itself stands that called what `frames` begin with, skipping our own, and what called
   that: the first may be a template of a library, which calls itself when it sorts. */
static void find_callers(struct gw_sample *sample) {
  void *frames[FRAMES];
  int count = backtrace(frames, FRAMES), at = 0;
  while (at < count && (uint64_t)(uintptr_t)frames[at] != sample->address) at++;
  for (int stored = 0, found = 0; ++at < count && stored < 4;) {
    uintptr_t address = (uintptr_t)frames[at];
    int inside = address - text_begin < text_end - text_begin;
    if (stored && sample->callers[stored - 1] == address) continue;
    if (inside || (!found && stored < 2)) sample->callers[stored++] = address;
    found |= inside;
  }
}

/* The registers of the sample that comes next, as far as all before it have theirs. */
static void keep_registers(struct gw_thread *t, const ucontext_t *context) {
#if defined __x86_64__
  struct gw_file *file = &t->registers;
  if (file->used / sizeof(struct gw_registers) != t->samples.used / sizeof(struct gw_sample)) return;
  if (!gw_grow(file, sizeof(struct gw_registers))) return;
  memcpy(file->base + file->used, context->uc_mcontext.gregs, sizeof(struct gw_registers)); /* these come first */
  file->used += sizeof(struct gw_registers);
#else
  (void)t;
  (void)context;
#endif
}

/* The address in the program itself, or place in Python, that a call was made from by way of libraries. */
uint64_t gw_own_caller(uint64_t caller) {
  void *frames[FRAMES];
  if (caller & GW_PYTHON || !ready || caller - text_begin < text_end - text_begin) return caller;
  int count = backtrace(frames, FRAMES);
  for (int at = 0; at < count; at++)
    if ((uintptr_t)frames[at] - text_begin < text_end - text_begin) return (uint64_t)(uintptr_t)frames[at];
  return caller;
}

#if defined __x86_64__
#define DENORMAL_SEEN 0x2u  /* of MXCSR: an operand was subnormal since the bit was cleared */
#define DENORMAL_TRAPS 0x100u /* cleared where the program wants a signal for each */

/* Of two numbers of 32 bits, or one of 64. */
static int is_subnormal(uint32_t low, uint32_t high) {
  if ((low & 0x7fffffffu) - 1 < 0x7fffffu || (high & 0x7fffffffu) - 1 < 0x7fffffu) return 1;
  return (high & 0x7fffffffu) == 0 && low;
}
#endif

/* Whether the thread computes with subnormal numbers, each of which takes the processor a hundred cycles and more: it has
   met one since the sample before, and one is in a register now. The mark is cleared for the next sample. */
static uint16_t find_state(const ucontext_t *context) {
#if defined __x86_64__
  struct _libc_fpstate *floats = context->uc_mcontext.fpregs;
  if (!floats || !(floats->mxcsr & DENORMAL_SEEN) || !(floats->mxcsr & DENORMAL_TRAPS)) return 0;
  floats->mxcsr &= ~DENORMAL_SEEN;
  for (int at = 0; at < 16; at++) {
    const uint32_t *lane = floats->_xmm[at].element;
    if (is_subnormal(lane[0], lane[1]) || is_subnormal(lane[2], lane[3])) return GW_SUBNORMAL;
  }
#else
  (void)context;
#endif
  return 0;
}

static void tick(int number, siginfo_t *info, void *state) {
  (void)number;
  struct gw_thread *t = gw_self;
  if (!t || !t->live || gw_depth || !t->samples.path) return; /* calls tell their CPU time themselves */
  int saved = errno;
  gw_settle();
  if (gw_grow(&t->samples, sizeof(struct gw_sample))) {
    struct gw_sample *sample = (struct gw_sample *)(t->samples.base + t->samples.used);
    const ucontext_t *context = state;
#if defined __x86_64__
    sample->address = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    sample->address = context->uc_mcontext.pc;
#endif
    sample->cpu_ns = gw_thread_cpu();
    sample->core = (uint16_t)sched_getcpu();
    sample->state = find_state(context);
    sample->missed = (uint32_t)(info->si_overrun > 0 ? info->si_overrun : 0);
    keep_registers(t, context);
    gw_depth++;
    sample->callers[3] = gw_python(&sample->callers[2], 1);
    if (!sample->callers[3]) find_callers(sample);
    gw_depth--;
    sample->time_ns = gw_now();
    t->samples.used += sizeof *sample;
  }
  errno = saved;
}

/* How long a cycle of the processor's clock takes, in ps: additions that wait for each other take one each. */
static unsigned measure_cycle(void) {
  uint64_t best = UINT64_MAX;
#if defined __x86_64__
  for (int round = 0; round < 8; round++) {
    uint64_t begin = gw_now(), sum = 0;
    for (int i = 0; i < 10; i++) __asm__ volatile(".rept 1000\n\tadd $1, %0\n\t.endr" : "+r"(sum));
    uint64_t lasted = gw_now() - begin;
    if (lasted < best) best = lasted;
  }
#endif
  return best == UINT64_MAX ? 0 : (unsigned)(best / 10);
}

#if defined __x86_64__
/* How long products that wait for each other take, ns: the shortest of some rounds. */
static uint64_t time_products(double number) {
  uint64_t best = UINT64_MAX;
  for (int round = 0; round < 8; round++) {
    double product = number, one = 1.0;
    uint64_t begin = gw_now();
    __asm__ volatile(".rept 1000\n\tmulsd %1, %0\n\t.endr" : "+x"(product) : "x"(one));
    uint64_t lasted = gw_now() - begin;
    if (lasted < best) best = lasted;
  }
  return best;
}
#endif

/* How many times as long a product of a subnormal number takes on this processor, in per cent: some make no difference.
   The marks and the mode of the thread stay as they are. */
static unsigned measure_subnormal(void) {
#if defined __x86_64__
  unsigned mode, usual = 0x1f80u;
  __asm__ volatile("stmxcsr %0" : "=m"(mode));
  __asm__ volatile("ldmxcsr %0" : : "m"(usual));
  uint64_t normal = time_products(1.5), small = time_products(1e-310);
  __asm__ volatile("ldmxcsr %0" : : "m"(mode));
  return normal ? (unsigned)(100 * small / normal) : 0;
#else
  return 0;
#endif
}

void gw_sampling_prepare(void) {
  const char *rate = getenv("GAPWATCH_RECORDING_SAMPLES");
  void *frames[4];
  if (rate && atoi(rate) <= 0) return;
  if (rate) period_ns = 1000000000 / atoi(rate);
  struct sigaction action, before;
  int signal = SIGRTMAX - 5;
  sigaction(signal, NULL, &before);
  if (before.sa_handler != SIG_DFL) return;
  dl_iterate_phdr(look, NULL);
  backtrace(frames, 4); /* loads the unwinder, which a signal handler must not do */
  memset(&action, 0, sizeof action);
  action.sa_sigaction = tick;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigfillset(&action.sa_mask);
  ready = !sigaction(signal, &action, NULL);
  gw_tell("sampling %d", 1000000000 / period_ns);
  gw_tell("cycle %u", measure_cycle());
  gw_tell("subnormal %u", measure_subnormal());
}

/* When a thread's first sample is due. Kernels look at such timers only as their clock ticks, mostly every 4 ms. Threads
   that live for less than a period would never be sampled if it were due after one: so that each of them has its share of
   the samples, it comes at a random moment of the first period, less the tick that passes until it is noticed. */
static long first_ns(const struct gw_thread *t) {
  struct timespec tick = {0, 0};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  long spare = period_ns - tick.tv_nsec;
  if (spare <= 0) return 1;
  uint64_t mixed = (gw_now() ^ (uint64_t)t->tid << 32) * 0x9e3779b97f4a7c15u;
  return 1 + (long)((mixed >> 33) % (uint64_t)spare);
}

void gw_samples_begin(struct gw_thread *t) {
  timer_t timer;
  struct sigevent event;
  if (!ready || !t->samples.path) return;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMAX - 5;
  event.sigev_notify_thread_id = t->tid;
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer)) return;
  struct itimerspec every = {{0, period_ns}, {0, first_ns(t)}};
  timer_settime(timer, 0, &every, NULL);
  t->timer = (void *)timer;
  t->timed = 1;
}

void gw_samples_end(struct gw_thread *t) {
  if (t->timed) timer_delete((timer_t)t->timer);
  t->timed = 0;
}
