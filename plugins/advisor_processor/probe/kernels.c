/* What one core and its memory can do: each kernel prints one line per sample, "nanoseconds cycle", the time of one
   operation and of one clock cycle measured around it, so that a clock that changes does not change the ratio.

   kernels NAME SAMPLES [BYTES|THREADS] */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__AVX512F__)
#define WIDE 64
#elif defined(__AVX__)
#define WIDE 32
#else
#define WIDE 16
#endif
#if defined(__x86_64__)
#define VECTOR "x"
#elif defined(__aarch64__)
#define VECTOR "w"
#else
#error "no kernels for this processor"
#endif

typedef double wide __attribute__((vector_size(WIDE)));

/* The compiler may neither drop nor combine what touches a kept value. */
#define KEEP(x) __asm__ volatile("" : "+" VECTOR(x))
#define KEEP_INT(x) __asm__ volatile("" : "+r"(x))
#define TEN(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define FOUR(X) X X X X

static char *small; /* fits into any first cache */
static volatile double sink;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Dependent additions of registers take one cycle each on every processor of the last twenty years. */
static double chain(long cycles)
{
    uint64_t a = 1, b = 3;
    KEEP_INT(b);
    double begin = now();
    for (long i = 0; i < cycles; i += 40) {
#define STEP(n) a += b; KEEP_INT(a);
        FOUR(TEN(STEP))
#undef STEP
    }
    double end = now();
    sink = (double)a;
    return (end - begin) / cycles;
}

#define THROUGHPUT(name, type, operation)                                       \
    static double name(long count)                                              \
    {                                                                           \
        type b = (type){0} + 1.0000001, c = (type){0} + 1e-9;                   \
        type a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b; \
        KEEP(b);                                                                \
        KEEP(c);                                                                \
        double begin = now();                                                   \
        for (long i = 0; i < count; i += 40) {                                  \
            FOUR(TEN(operation))                                                \
        }                                                                       \
        return (now() - begin) / count;                                         \
    }
#define LATENCY(name, type, operation)                                          \
    static double name(long count)                                              \
    {                                                                           \
        type b = (type){0} + 1.0000001, c = (type){0} + 1e-9, a0 = b;           \
        KEEP(b);                                                                \
        KEEP(c);                                                                \
        double begin = now();                                                   \
        for (long i = 0; i < count; i += 4) {                                   \
            FOUR(operation(0))                                                  \
        }                                                                       \
        return (now() - begin) / count;                                         \
    }
#define ADD(n) a##n = a##n + c; KEEP(a##n);
#define MUL(n) a##n = a##n * b; KEEP(a##n);
#define FMA(n) a##n = a##n * b + c; KEEP(a##n);
#define DIV(n) a##n = a##n / b; KEEP(a##n);
#define BOTH(unit, OP)                          \
    THROUGHPUT(unit##_wide, wide, OP)           \
    THROUGHPUT(unit##_narrow, double, OP)       \
    LATENCY(unit##_latency, double, OP)
/* Additions and multiplications at once tell whether they compete for the same pipes. */
#define MIX(n) if (n % 2) { a##n = a##n + c; } else { a##n = a##n * b; } KEEP(a##n);
THROUGHPUT(mixed_wide, wide, MIX)
THROUGHPUT(mixed_narrow, double, MIX)
#define ADD_MUL(n) ADD(n) MUL(n)
BOTH(fp_add, ADD)
BOTH(fp_mul, MUL)
LATENCY(mixed_latency, double, ADD_MUL)
BOTH(fp_div, DIV)
#if defined(__FMA__) || defined(__aarch64__)
BOTH(fp_fma, FMA)
#endif

#define MEMORY(name, type, access)                                              \
    static double name(long count)                                              \
    {                                                                           \
        volatile type *p = (volatile type *)small;                              \
        type v = (type){0};                                                     \
        double begin = now();                                                   \
        for (long i = 0; i < count; i += 40) {                                  \
            FOUR(TEN(access))                                                   \
        }                                                                       \
        KEEP(v);                                                                \
        return (now() - begin) / count;                                         \
    }
#define LOAD(n) (void)p[n];
#define STORE(n) p[n] = v;
MEMORY(load_wide, wide, LOAD)
MEMORY(load_narrow, double, LOAD)
MEMORY(store_wide, wide, STORE)
MEMORY(store_narrow, double, STORE)

/* Additions of integers, on as many chains as any core has units for them. */
static double int_narrow(long count)
{
    uint64_t b = 3, a0 = 0, a1 = 0, a2 = 0, a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0, a8 = 0, a9 = 0;
    KEEP_INT(b);
    double begin = now();
    for (long i = 0; i < count; i += 40) {
#define STEP(n) a##n += b; KEEP_INT(a##n);
        FOUR(TEN(STEP))
#undef STEP
    }
    double end = now();
    sink = (double)(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9);
    return (end - begin) / count;
}

/* Instructions that do nothing are limited by how many a core starts in a cycle. */
static double issue(long count)
{
    double begin = now();
    for (long i = 0; i < count; i += 40) {
#define STEP(n) __asm__ volatile("nop");
        FOUR(TEN(STEP))
#undef STEP
    }
    return (now() - begin) / count;
}

/* A value stored, loaded and added to again: the way through the store buffer and one addition. */
static double forward(long count)
{
    volatile double *p = (volatile double *)small;
    p[0] = 0;
    double begin = now();
    for (long i = 0; i < count; i++)
        p[0] = p[0] + 1e-9;
    return (now() - begin) / count;
}

static double forward_moving(long count)
{
    volatile double *p = (volatile double *)small;
    p[0] = 0;
    double begin = now();
    for (long i = 0; i < count; i += 256) {
        for (long j = 0; j < 255; j++)
            p[j + 1] = p[j] + 1e-9;
        p[0] = p[255] + 1e-9; /* the chain goes on */
    }
    return (now() - begin) / count;
}

static void *pages(size_t bytes)
{
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
#ifdef MADV_HUGEPAGE
    madvise(found, bytes, MADV_HUGEPAGE);
#endif
    return found;
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* One cycle through all lines in random order: no prefetcher follows it. */
static void **circle(size_t bytes)
{
    size_t lines = bytes / 64;
    char *base = pages(bytes);
    uint32_t *order = malloc(lines * sizeof *order);
    for (size_t i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t j = random_number() % (i + 1);
        uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (size_t i = 0; i < lines; i++)
        *(void **)(base + 64ul * order[i]) = base + 64ul * order[(i + 1) % lines];
    void **first = (void **)(base + 64ul * order[0]);
    free(order);
    return first;
}

static void **place;

static double chase(long count)
{
    void **p = place;
    double begin = now();
    for (long i = 0; i < count; i += 4)
        p = *(void ***)*(void ***)*(void ***)*(void ***)p;
    double end = now();
    place = p;
    return (end - begin) / count;
}

static char *stream;
static size_t stream_bytes;

/* Per byte: reads `count` bytes of the stream again and again. */
static double read_bytes(long count)
{
    double begin = now();
    long done = 0;
    while (done < count) {
        for (size_t i = 0; i < stream_bytes; i += 8 * WIDE) {
            volatile wide *p = (volatile wide *)(stream + i);
            (void)p[0], (void)p[1], (void)p[2], (void)p[3], (void)p[4], (void)p[5], (void)p[6], (void)p[7];
        }
        done += stream_bytes;
    }
    return (now() - begin) / done;
}

#ifdef _OPENMP
/* STREAM's triad over all threads, its bytes as STREAM counts them: two reads and a write. */
static double triad(long count)
{
    size_t n = stream_bytes / 3 / sizeof(double);
    double *a = (double *)stream, *b = a + n, *c = b + n;
    (void)count;
    double begin = now();
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
    return (now() - begin) / (3.0 * n * sizeof(double));
}

static double barrier(long count)
{
    double begin = 0, end = 0;
#pragma omp parallel
    {
#pragma omp barrier
#pragma omp master
        begin = now();
        for (long i = 0; i < count; i++) {
#pragma omp barrier
        }
#pragma omp master
        end = now();
    }
    return (end - begin) / count;
}

static double fork_join(long count)
{
    double begin = now();
    for (long i = 0; i < count; i++) {
#pragma omp parallel
        __asm__ volatile("" ::: "memory");
    }
    return (now() - begin) / count;
}
#endif

/* Per page: pages of a file that the system has let go of, touched in a random order, so that each is read back from
   the device that holds the directory; 0 where the system keeps them, as that of a file system in memory. */
static double page_fault(long count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page * count, first = 0, order = 1;
    char name[] = "gapwatch-probe-XXXXXX";
    int file = mkstemp(name);
    unsigned char resident = 1;
    char *data = malloc(bytes), *map = MAP_FAILED;
    double begin = 0, end = 0;
    if (file >= 0 && data != NULL) {
        unlink(name);
        memset(data, 1, bytes);
        if (write(file, data, bytes) == (ssize_t)bytes && fsync(file) == 0 &&
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0)
            map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    }
    if (map != MAP_FAILED && madvise(map, bytes, MADV_RANDOM) == 0 && mincore(map, page, &resident) == 0 && !(resident & 1)) {
        begin = now();
        for (long i = 0; i < count; i++) {
            sink = map[first * page];
            first = (first * 5 + order) % count; /* a full period: count is a power of two */
        }
        end = now();
    }
    if (map != MAP_FAILED)
        munmap(map, bytes);
    free(data);
    if (file >= 0)
        close(file);
    return (end - begin) / count;
}

static const struct {
    const char *name;
    double (*run)(long);
    long count;
} kernels[] = {
    {"clock", chain, 1000000},
    {"fp_add.wide", fp_add_wide, 200000}, {"fp_add.narrow", fp_add_narrow, 200000},
    {"fp_add.latency", fp_add_latency, 50000},
    {"fp_mul.wide", fp_mul_wide, 200000}, {"fp_mul.narrow", fp_mul_narrow, 200000},
    {"fp_mul.latency", fp_mul_latency, 50000},
#if defined(__FMA__) || defined(__aarch64__)
    {"fp_fma.wide", fp_fma_wide, 200000}, {"fp_fma.narrow", fp_fma_narrow, 200000},
    {"fp_fma.latency", fp_fma_latency, 50000},
#endif
    {"mixed.wide", mixed_wide, 200000}, {"mixed.narrow", mixed_narrow, 200000},
    {"mixed.latency", mixed_latency, 40000},
    {"fp_div.wide", fp_div_wide, 20000}, {"fp_div.narrow", fp_div_narrow, 40000},
    {"fp_div.latency", fp_div_latency, 20000},
    {"load.wide", load_wide, 200000}, {"load.narrow", load_narrow, 200000},
    {"store.wide", store_wide, 200000}, {"store.narrow", store_narrow, 200000},
    {"int.narrow", int_narrow, 400000}, {"issue", issue, 400000},
    {"forward", forward, 40000}, {"forward.moving", forward_moving, 40960},
    {"chase", chase, 100000}, {"read", read_bytes, 4000000}, {"page_fault", page_fault, 1024},
#ifdef _OPENMP
    {"triad", triad, 1}, {"barrier", barrier, 1000}, {"fork_join", fork_join, 1000},
#endif
};

static void prepare(const char *name, long argument)
{
    small = pages(1 << 16);
    memset(small, 0, 1 << 16);
    if (strcmp(name, "chase") == 0)
        place = circle((size_t)argument);
    if (strcmp(name, "read") == 0 || strcmp(name, "triad") == 0) {
        stream_bytes = (size_t)argument / (8 * WIDE) * (8 * WIDE);
        stream = pages(stream_bytes);
        memset(stream, 0, stream_bytes);
    }
#ifdef _OPENMP
    if (strcmp(name, "barrier") == 0 || strcmp(name, "fork_join") == 0)
        omp_set_num_threads((int)argument);
#endif
}

int main(int count, char **words)
{
    if (count < 3 || strcmp(words[1], "wide") == 0)
        return printf("%d\n", WIDE * 8), 0;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        if (strcmp(kernels[k].name, words[1]) != 0)
            continue;
        prepare(words[1], count > 3 ? atol(words[3]) : 0);
        kernels[k].run(kernels[k].count); /* warm */
        for (int sample = atoi(words[2]); sample > 0; sample--) {
            double before = chain(40000), time = kernels[k].run(kernels[k].count), after = chain(40000);
            printf("%.9g %.9g\n", time, before < after ? before : after);
        }
        return 0;
    }
    return 4; /* no such kernel on this processor */
}
