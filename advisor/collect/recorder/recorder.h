/* The recorder that gapwatch preloads: what its parts share.  docs/formats/recording.md describes what it writes. */
#ifndef GAPWATCH_RECORDER_H
#define GAPWATCH_RECORDER_H

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

/* Kinds of records. */
enum { GW_CALL = 1, GW_MESSAGE = 2, GW_STATE = 3, GW_FORK = 4, GW_JOIN = 5, GW_FOLDED = 6 };

/* What a record tells beside the call: the kinds of events of advisor/trace/events.py. */
enum { GW_SEND = 3, GW_RECV, GW_ISEND, GW_ISEND_DONE, GW_IRECV_POST, GW_IRECV, GW_COLLECTIVE, GW_IO = 14, GW_ONE_SIDED };

/* The tag of a collective that brings the same data as the one before at its place. */
#define GW_REPEATED 1

/* A partner is a rank of the communicator; GW_NOBODY where there is none. */
#define GW_NOBODY (-1)

/* A caller as records hold it. */
#define GW_CALLER(address) ((uint64_t)(uintptr_t)(address) & 0xffffffffffffu)

/* One call, message or state: 64 bytes, zero where nothing was written. A call that never returned has no end. Of several
   folded calls `cpu_start_ns` is how long the shortest took and, times 2^32, the longest (ns). */
struct gw_record {
  uint64_t start_ns, end_ns;
  uint64_t caller : 48, kind : 8, event : 8;
  int64_t size;
  uint64_t cpu_start_ns, cpu_end_ns; /* thread CPU clock, 0 where it was not read */
  uint16_t function, comm;
  int32_t partner, tag;
  uint32_t request;
};

struct gw_sample {
  uint64_t time_ns, cpu_ns;
  uint64_t address, callers[4];
  uint16_t core, state; /* state: GW_SUBNORMAL or nothing */
  uint32_t missed;      /* ticks that came too late to be samples of their own */
};

#define GW_SUBNORMAL 1 /* the processor took a number below the smallest normal one since the sample before, and holds one */

/* What the registers of integers held at a sample, in the order of the context of signals; on x86-64 only. */
struct gw_registers {
  uint64_t values[16]; /* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp */
};

/* A file that grows in pieces below one mapping; all of it behind `used` is zero. A child of fork has it in memory only
   until it settles; then it has no room yet. */
struct gw_file {
  char *base;
  uint64_t used, room, mapped; /* bytes */
  char *path;                  /* NULL where nothing can be written any more */
};

/* A descriptor that stays open, and of which file it is: the program may close it, and get the number for another. */
struct gw_descriptor {
  int fd;
  dev_t device;
  ino_t file;
};

#define GW_SLOTS 16 /* records that calls are folded into at a time */
#define GW_COUNTED 64 /* more calls than that in one record are only counted and timed */
#define GW_LONG_CALL_NS 10000 /* a call that takes so long has a record of its own, and its CPU time is read */
#define GW_HELD 8   /* locks inside of each other that are followed */

struct gw_thread {
  struct gw_file records, samples, registers;
  uint64_t last_ns;           /* times of a thread rise strictly */
  uint64_t cpu_ns, cpu_at_ns; /* the thread's CPU clock when it was last read, and when that was */
  uint64_t queue_ns, state_ns;
  uint64_t begin_ns, begin_cpu_ns;
  uint64_t lost_ns;           /* what it was without a core between the last two readings of its CPU clock */
  uint64_t granted_ns;        /* up to when its allowance of brief calls with records of their own is used up */
  struct gw_record *slots[GW_SLOTS];
  unsigned slots_used;
  double tick_ns;             /* how long a tick of the processor's counter is; 0 where it has none that is steady */
  uint64_t folded_until;      /* ticks at which a new record has to begin */
  struct {
    const struct gw_record *like; /* the folded record that the call joins if it is brief */
    unsigned slot;
    uint64_t since; /* ticks */
  } counted;
  struct {
    const void *lock;
    struct gw_record *acquired; /* the record that the acquisition is part of */
    uint64_t since;             /* ns, or ticks of the processor's counter */
    int in_ticks;
  } held[GW_HELD];
  unsigned holding;
  struct gw_record *previous; /* the last call that ended, None if something came behind it */
  struct gw_record *lone;     /* the last creation of a task that holds nothing but a run of it */
  struct gw_descriptor schedstat;
  int number, live, timed;
  int file;                   /* the number of the first thread that wrote into these files */
  struct gw_thread *next;     /* of those that have ended */
  pid_t tid;
  void *timer;
};

extern int gw_on;                             /* whether anything is recorded at present */
extern __thread struct gw_thread *gw_self;    /* NULL until the thread records something */
extern __thread int gw_depth;                 /* > 0 inside of a recorded library call, and of our own code */
extern __thread int gw_forking;               /* the thread forks, and no library inside of a call */
extern int gw_unsettled;                      /* a child of fork without files of its own */
extern __thread void *gw_fortran_caller;      /* where a Fortran program called a binding that is about to call C */

/* Begin recording, with a rank (MPI) or without (-1); called once. */
void gw_start(int rank, int ranks);
/* Say how the recording of this process ends, and end it. */
void gw_stop(void);
/* Give a child of fork files of its own, if it has none yet. */
void gw_settle(void);
int gw_is_brief(void); /* whether it may do without them */

struct gw_thread *gw_attach(void);            /* this thread's files, made if need be; NULL where that fails */
void gw_detach(void);                         /* the thread ends */
int gw_file_open(struct gw_file *file, const char *path); /* 0 where that fails */
int gw_grow(struct gw_file *file, uint64_t bytes);
void gw_file_close(struct gw_file *file);
void gw_file_part(struct gw_file *file, const char *path); /* go on in memory, away from the parent's file */
void gw_file_settle(struct gw_file *file);
void gw_keep_descriptor(struct gw_descriptor *kept, const char *path, int flags);
int gw_is_ours(const struct gw_descriptor *kept);
void gw_drop_descriptor(struct gw_descriptor *kept);
extern uint64_t gw_limit; /* bytes that all files of this process may take */
extern int gw_full;       /* why a file could not grow: 1 the limit, 2 the disk, 3 the address space (RLIMIT_AS) */
struct gw_record *gw_append(struct gw_thread *t);
void gw_state(struct gw_thread *t, uint64_t now_ns);
void gw_records_part(void); /* in a child of fork: it is in no call */
uint64_t gw_lost(const struct gw_thread *t, uint64_t now_ns);
void gw_tell_prices(struct gw_thread *t);
int gw_process_open(const char *path); /* the process file; 0 where that fails */
void gw_process_part(const char *path); /* keep the lines for a file that may never be made; NULL for none */
void gw_process_settle(pid_t parent, uint64_t forked_ns);
void gw_tell_process(int rank, int ranks);
void gw_tell_objects(void);
void gw_tell_affinity(void);
void gw_tell_usage(const char *when);
void gw_tell_machine(const char *when);
void gw_tell_children(void);
const char *gw_program(void);
int gw_is_launched(void);              /* whether a launcher of MPI started this process */
int gw_launches(void);                 /* whether it is one, or a shell */
void gw_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gw_tell_function(unsigned function);     /* name a function the first time it is used */
void gw_tell_text(const char *key, long number, const char *text);
void *gw_resolve(const char *name);           /* the next definition of a function, abort if there is none */
void *gw_find(const char *name);              /* the same, NULL if there is none */
/* The same where a library may be loaded for its users alone, and several times, as modules of Python bring their own:
   the definition that the caller's library was loaded with. */
struct gw_way {
  const void *caller;
  void *real;
};
void *gw_resolve_for(const char *name, const void *caller, void **everywhere, struct gw_way *way);
#define GW_REAL(type, name)                                                                                     \
  ({                                                                                                            \
    static void *everywhere;                                                                                    \
    static __thread struct gw_way way;                                                                          \
    (type)(everywhere ? everywhere : gw_resolve_for(name, __builtin_return_address(0), &everywhere, &way));     \
  })
void *gw_find_data(const char *name);         /* a variable, where the program itself finds it */
uint64_t gw_now(void);
uint64_t gw_thread_cpu(void);
void gw_ticks_begin(void);
double gw_tick_ns(uint64_t now_ns); /* 0 where the processor has no steady counter */

extern const char *const gw_names[];          /* of functions, by number */
extern const unsigned gw_functions;
extern unsigned char gw_named[];

/* Record the begin of a call; NULL where it is not to be recorded. Holds off everything below it until gw_leave, or until
   a call whose wrapper's frame shows that this one was left by a jump. */
struct gw_record *gw_enter_at(unsigned function, const void *caller, const void *frame);
#define gw_enter(function, caller) gw_enter_at(function, caller, __builtin_frame_address(0))
void gw_leave(struct gw_record *record);
/* Read the clock when a call has returned: one reading for the messages that it completed and for its own end. */
void gw_returned(struct gw_record *record);
void gw_leave_returned(struct gw_record *record);
/* The same for calls that may be brief and many: equal ones become one record once a thread makes too many of them.
   Returns the record that the call is part of. */
struct gw_record *gw_enter_brief_at(unsigned function, const void *caller, const void *frame);
#define gw_enter_brief(function, caller) gw_enter_brief_at(function, caller, __builtin_frame_address(0))
struct gw_record *gw_leave_brief(struct gw_record *record);
struct gw_record *gw_fold(struct gw_thread *t, struct gw_record *record, uint64_t now_ns);
/* The same at a third of the price, for calls that are made all the time: whether the call is like those that a record
   holds already, so that the processor's counter alone has to time it. Returns 0 where it needs a record to begin with. */
int gw_count(unsigned function, const void *caller, unsigned request);
/* The counted call has returned; the record that it is part of. `ticks` is when that was. */
struct gw_record *gw_counted(uint64_t ticks);
/* Record a call that has just returned and took so long. */
struct gw_record *gw_record_returned(const struct gw_record *like, uint64_t took_ns);
/* Of threads that take no part in the program, such as helpers of libraries, nothing is recorded. */
#define ENTER(function) (gw_on && gw_self ? gw_enter(function, __builtin_return_address(0)) : NULL)
#define ENTER_BRIEF(function) (gw_on && gw_self ? gw_enter_brief(function, __builtin_return_address(0)) : NULL)
/* The same for what encloses other calls, such as a parallel region. */
struct gw_record *gw_open(unsigned function, const void *caller);
void gw_close(struct gw_record *record);
/* Close it, and let brief ones that follow each other be one record. */
void gw_close_brief(struct gw_record *record);
/* Record something else that happens now, inside of a call or not. */
struct gw_record *gw_note(unsigned kind, unsigned event);
/* End a call that has returned and brought nothing: it joins the one before, if that was the same and just over. */
void gw_leave_idle(struct gw_record *record);

/* A call that waits for a lock, with a record of its own or a counted one: whether another thread holds the lock, that
   this thread has it now, that it gives it back. */
int gw_lock_counted(unsigned function, const void *caller, const void *lock);
void gw_counted_lock_taken(const void *lock);
void gw_lock_awaited(struct gw_record *record, const void *lock);
void gw_lock_taken(struct gw_record *record, const void *lock);
void gw_lock_given(const void *lock);

/* Where a thread is in a Python program: the number of the place of the innermost function of the program itself (of any
   where there is none), and that of the innermost one; 0 where there is none. A sample has to read `safely`. */
#define GW_PYTHON (1ull << 47) /* no address of a program has this bit */
uint64_t gw_python(uint64_t *innermost, int safely);
void gw_python_prepare(void);
int gw_is_interpreter(const void *caller); /* whether code of Python's interpreter itself calls */
void gw_python_part(void); /* in a child of fork */

void gw_samples_begin(struct gw_thread *t);
void gw_samples_end(struct gw_thread *t);
void gw_sampling_prepare(void);
uint64_t gw_own_caller(uint64_t caller);
void gw_keep_environment(void);
void gw_openmp_begin(void);

/* The processor's counter, which takes a third of the time to read that a clock takes. */
static inline uint64_t gw_ticks(void) {
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

/* How long ago that was, by the counter. */
static inline uint64_t gw_ticked_ns(const struct gw_thread *t, uint64_t since, uint64_t ticks) {
  return (uint64_t)((double)(ticks - since) * t->tick_ns);
}

#endif
