/* Runs one loop again and again and prints the CPU time of one iteration in nanoseconds, the least of many, and in cycles
   of the fastest clock that was seen beside that:

   incore LOOP [BYTES [BATCHES]]

   BYTES is what the loop works on in all (default 24 KiB: it stays in the first cache). */
#include "loops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double *a, *b, *c, result;
static long n, side, stride = 1;

static long run(const char *loop)
{
    if (strcmp(loop, "triad") == 0)
        return triad(n / 3, a, b, c, 3.0);
    if (strcmp(loop, "daxpy") == 0)
        return daxpy(n / 2, a, b, 1e-9);
    if (strcmp(loop, "ddot") == 0)
        return ddot(n / 2, a, b, &result);
    if (strcmp(loop, "horner") == 0)
        return horner(n, a, 0.5, &result);
    if (strcmp(loop, "jacobi") == 0)
        return jacobi(side, n / 2 / side, a, b);
    if (strcmp(loop, "gauss_seidel") == 0)
        return gauss_seidel(side, n / side, a);
    if (strcmp(loop, "quotient") == 0)
        return quotient(n / 2, a, b, 3.0);
    if (strcmp(loop, "reciprocal") == 0)
        return reciprocal(n / 2, a, b, 3.0);
    if (strcmp(loop, "strided") == 0)
        return strided(n / (stride + 1), stride, a, b);
    fprintf(stderr, "incore: no loop is called %s\n", loop);
    exit(2);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Dependent additions of registers take a cycle each: nanoseconds of one. */
static double cycle(void)
{
    unsigned long x = 1, one = 3;
    double begin = now();
    for (int i = 0; i < 4000; i++) {
#define ADD __asm__ volatile("" : "+r"(x), "+r"(one)); x += one;
        ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
#undef ADD
    }
    __asm__ volatile("" : "+r"(x));
    return (now() - begin) / 40000;
}

int main(int count, char **words)
{
    const char *loop = count > 1 ? words[1] : "triad";
    long bytes = count > 2 ? atol(words[2]) : 24576, batches = count > 3 ? atol(words[3]) : 200;
    double best = 1e300, clock = 1e300;
    if (strncmp(loop, "strided", 7) == 0 && loop[7]) {
        stride = atol(loop + 7);
        loop = "strided";
    }
    n = bytes / (long)sizeof(double);
    side = 3; /* one long row inside: short ones overlap */
    a = calloc((size_t)n + 64, sizeof(double));
    b = calloc((size_t)n + 64, sizeof(double));
    c = calloc((size_t)n + 64, sizeof(double));
    for (long i = 0; i < n; i++)
        a[i] = b[i] = c[i] = 1.0 + 1e-6 * (double)i;
    long calls = 2000000 / n > 0 ? 2000000 / n : 1;
    if (batches == 1)
        calls = 1; /* for tools that count */
    for (long batch = 0; batch < batches; batch++) {
        long iterations = 0;
        double before = cycle(), begin = now();
        for (long call = 0; call < calls; call++)
            iterations += run(loop);
        double time = (now() - begin) / (double)iterations;
        double after = cycle(), least = before < after ? before : after;
        if (time < best)
            best = time;
        if (least < clock)
            clock = least;
    }
    printf("%s %.6g ns %.6g cycles\n", loop, best, best / clock);
    free(a);
    free(b);
    free(c);
    return 0;
}
