/* Preloaded into a traced program: tells the tracer of allocations, of copies, and of threads' parts in parallel regions.
 *
 * It tells by a system call that no kernel knows, whose arguments the tracer sees: (kind, x, y, z), of a copy its caller,
 * and a place on the stack. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TELLING = 0x6777 };
enum { ALLOCATE = 1, FORK, JOIN, BEGIN, END, BARRIER, CALLERS, COPY, HEAP };

static void tell4(long kind, uint64_t x, uint64_t y, uint64_t z, uint64_t caller) {
    int saved = errno;
    syscall(TELLING, kind, x, y, z, caller, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    errno = saved;
}
static void tell(long kind, uint64_t x, uint64_t y, uint64_t z) { tell4(kind, x, y, z, 0); }
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))

/* Smaller ones are told of where the program itself allocates: nodes and short vectors, of
 * so many at most their callers too. */
enum { SMALLEST = 256, MOST_SMALL = 100000 };
/* Shorter copies are of structures, not of arrays. */
enum { SMALLEST_COPY = 64 };

static __thread int telling;

/* What looking for callers allocates does not come from the heap, where it would move what the program allocates. */
static char own[1 << 18];
static size_t taken;
static int is_own(const void *p) { return (const char *)p >= own && (const char *)p < own + sizeof own; }
static void *take(size_t size) {
    size_t at = __atomic_fetch_add(&taken, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    return at + size + 16 <= sizeof own ? own + ((16 - (uintptr_t)own % 16) % 16) + at : NULL;
}

/* Whether an address is in the program, not in a library. */
static int in_program(uint64_t address) {
    static uint64_t begin, end;
    if (!end) {
        const Elf64_Phdr *header = (const Elf64_Phdr *)(uintptr_t)getauxval(AT_PHDR);
        uint64_t base = 0, low = UINT64_MAX, high = 1;
        for (unsigned long k = 0; header && k < getauxval(AT_PHNUM); k++)
            if (header[k].p_type == PT_PHDR) base = (uint64_t)(uintptr_t)header - header[k].p_vaddr;
        for (unsigned long k = 0; header && k < getauxval(AT_PHNUM); k++)
            if (header[k].p_type == PT_LOAD) {
                uint64_t from = base + header[k].p_vaddr, to = from + header[k].p_memsz;
                low = from < low ? from : low, high = to > high ? to : high;
            }
        begin = low, end = high;
    }
    return begin <= address && address < end;
}

/* Tell of what the allocator itself accesses: the sizes in front of a piece of memory and behind it (of small ones), which
 * lie in lines of that piece, but for one that begins with a line. A freed one is also written to. */
static void touched(void *p, int freed) {
    uint64_t at = (uint64_t)(uintptr_t)p, size = malloc_usable_size(p);
    if (at % 64 || freed) tell(HEAP, at, 1, 0);
    if (size >= 16) tell(HEAP, at + size - 8, !freed, 0);
}

/* Tell of an allocation and of its callers: those next to it may be functions of a library's headers. */
static void *told(void *p, size_t size, uint64_t caller) {
    if (!p || telling) return p;
    static int small;
    if (size < SMALLEST && !in_program(caller)) return p;
    tell(ALLOCATE, (uint64_t)(uintptr_t)p, size < SMALLEST ? malloc_usable_size(p) : size, caller);
    if (size < SMALLEST) touched(p, 0);
    if (size < SMALLEST && small++ > MOST_SMALL) return p;
    void *frames[8] = {0};
    telling = 1; /* looking for callers may allocate */
    int n = backtrace(frames, 8), k = 0;
    telling = 0;
    while (k < n && (uint64_t)(uintptr_t)frames[k] != caller) k++;
#define FRAME(j) (k + (j) < n ? (uint64_t)(uintptr_t)frames[k + (j)] : 0)
    tell(CALLERS, FRAME(1), FRAME(2), FRAME(3));
    return p;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t size) { return telling ? take(size) : told(__libc_malloc(size), size, CALLER); }
void *calloc(size_t n, size_t size) { return telling ? take(n * size) : told(__libc_calloc(n, size), n * size, CALLER); }
void *realloc(void *p, size_t size) {
    if (!is_own(p)) return told(__libc_realloc(p, size), size, CALLER);
    char *to = telling ? take(size) : __libc_malloc(size);
    for (size_t k = 0; to && k < size && is_own((char *)p + k); k++) *(volatile char *)(to + k) = ((char *)p)[k];
    return to;
}
void *memalign(size_t alignment, size_t size) { return told(__libc_memalign(alignment, size), size, CALLER); }
void *aligned_alloc(size_t alignment, size_t size) { return told(__libc_memalign(alignment, size), size, CALLER); }
int posix_memalign(void **p, size_t alignment, size_t size) {
    *p = told(__libc_memalign(alignment, size), size, CALLER);
    return *p ? 0 : ENOMEM;
}
void *_Znwm(size_t size) { return told(__libc_malloc(size), size, CALLER); }
void *_Znam(size_t size) { return told(__libc_malloc(size), size, CALLER); }
void *_ZnwmSt11align_val_t(size_t size, size_t alignment) {
    return told(__libc_memalign(alignment, size), size, CALLER);
}
void *_ZnamSt11align_val_t(size_t size, size_t alignment) {
    return told(__libc_memalign(alignment, size), size, CALLER);
}
__attribute__((constructor)) static void load_unwinder(void) {
    void *frames[2];
    telling = 1;
    backtrace(frames, 2);
    telling = 0;
}

static void given_back(void *p, uint64_t caller) {
    if (is_own(p)) return;
    if (p && !telling && in_program(caller) && malloc_usable_size(p) < SMALLEST) touched(p, 1);
    __libc_free(p);
}
void free(void *p) { given_back(p, CALLER); }
void _ZdlPv(void *p) { given_back(p, CALLER); }
void _ZdlPvm(void *p, size_t size) { (void)size, given_back(p, CALLER); }

/* Copying and filling memory, which compilers also make of loops. The tracer makes accesses of what it is told, if the
 * program itself calls. No loops of C here: they would become calls of these functions. */
static void *copy(void *to, const void *from, size_t n, uint64_t caller) {
    void *at = to;
    if (n >= SMALLEST_COPY) tell4(COPY, (uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, n, caller);
    if ((uintptr_t)to - (uintptr_t)from >= n) {
        __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
    } else if (n) {
        at = (char *)to + n - 1, from = (const char *)from + n - 1;
        __asm__ volatile("std\n\trep movsb\n\tcld" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
    }
    return to;
}
static void *fill(void *to, int value, size_t n, uint64_t caller) {
    void *at = to;
    if (n >= SMALLEST_COPY) tell4(COPY, (uint64_t)(uintptr_t)to, 0, n, caller);
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(value) : "memory");
    return to;
}
void *memcpy(void *to, const void *from, size_t n) { return copy(to, from, n, CALLER); }
void *memmove(void *to, const void *from, size_t n) { return copy(to, from, n, CALLER); }
void *memset(void *to, int value, size_t n) { return fill(to, value, n, CALLER); }
void *__memcpy_chk(void *to, const void *from, size_t n, size_t most) { return (void)most, copy(to, from, n, CALLER); }
void *__memmove_chk(void *to, const void *from, size_t n, size_t most) { return (void)most, copy(to, from, n, CALLER); }
void *__memset_chk(void *to, int value, size_t n, size_t most) { return (void)most, fill(to, value, n, CALLER); }

/* Whoever comes to a parallel region has loaded the runtime library. */
extern int omp_get_thread_num(void) __attribute__((weak));

struct team {
    void (*body)(void *);
    void *data;
    uint64_t number;
};
static uint64_t teams;

static void part(void *given) {
    struct team *team = given;
    void (*body)(void *) = team->body;
    tell(BEGIN, team->number, (uint64_t)omp_get_thread_num(), (uint64_t)(uintptr_t)body);
    body(team->data);
    tell(END, 0, 0, 0);
}
#define TEAM(name, parameters, arguments)                                    \
    void name parameters {                                                   \
        static void(*real) parameters;                                       \
        if (!real) real = (void(*) parameters)dlsym(RTLD_NEXT, #name);       \
        struct team team = {body, data, teams++};                            \
        tell(FORK, team.number, (uint64_t)(uintptr_t)body, CALLER);          \
        body = part;                                                         \
        data = &team;                                                        \
        real arguments;                                                      \
        tell(JOIN, team.number, 0, 0);                                               \
    }
typedef void (*body_t)(void *);
TEAM(GOMP_parallel, (body_t body, void *data, unsigned threads, unsigned flags), (body, data, threads, flags))
#define LOOP(name) TEAM(name, (body_t body, void *data, unsigned threads, long from, long to, long by, long chunk, unsigned flags), (body, data, threads, from, to, by, chunk, flags))
#define RUNTIME(name) TEAM(name, (body_t body, void *data, unsigned threads, long from, long to, long by, unsigned flags), (body, data, threads, from, to, by, flags))
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
RUNTIME(GOMP_parallel_loop_runtime)
RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)
TEAM(GOMP_parallel_sections, (body_t body, void *data, unsigned threads, unsigned count, unsigned flags), (body, data, threads, count, flags))

#define BARRIER_OF(name)                                       \
    void name(void) {                                          \
        static void (*real)(void);                             \
        if (!real) real = (void (*)(void))dlsym(RTLD_NEXT, #name); \
        tell(BARRIER, 0, 0, 0);                                \
        real();                                                \
        tell(BARRIER, 1, 0, 0);                                \
    }
BARRIER_OF(GOMP_barrier)
BARRIER_OF(GOMP_loop_end)


