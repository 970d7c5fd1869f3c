/* One stream of executed blocks for each thread, and the windows of a sampled one. */
#ifndef STREAMS_H
#define STREAMS_H

#include "calls.h"

/* Which part of a run is scheduled: all of it, what a function does, or what follows its first return. */
enum { EVERYTHING, WITHIN, AFTER };
enum { MAX_ACCESSES = 1 << 16, MAX_STREAMS = 4096 };

struct window {
    uint64_t cycles, operations[COMPONENTS];
};

struct stream {
    struct oracle oracle;
    const struct block *pending;
    struct access *accesses;
    uint32_t n_accesses;
    uint64_t lost, *counts, n_counts;
    int64_t left; /* instructions until the window opens or closes */
    int on;
    struct calls calls;
    struct window *windows;
    uint32_t n_windows;
    struct stream *before;
};

struct plan {
    uint32_t limit;
    uint64_t rows, window, period;
    int region, by_object;
};

static struct stream *stream_new(const struct plan *plan) {
    struct stream *s = calloc(1, sizeof *s);
    oracle_init(&s->oracle, plan->limit, plan->rows);
    s->accesses = malloc((MAX_ACCESSES + 1) * sizeof *s->accesses);
    s->on = 1;
    s->left = (int64_t)plan->window;
    return s;
}

static void stream_free(struct stream *s) {
    oracle_free(&s->oracle);
    free(s->accesses);
    free(s->counts);
    free(s->windows);
    free(s);
}

static inline void stream_finish(struct stream *s) {
    if (s->pending) oracle_block(&s->oracle, s->pending->steps, s->pending->n_steps, s->accesses, s->n_accesses);
    s->pending = NULL;
    s->n_accesses = 0;
}

static void stream_sum(const struct stream *s, uint64_t *sums) {
    for (int i = 0; i < BUCKETS; i++)
        for (int k = 0; k < COMPONENTS; k++) sums[k] += s->oracle.bucket[i][k];
}

/* Ends a window: what it made counts as available from the beginning of the next one. */
static void stream_close_window(struct stream *s) {
    struct window total = {s->oracle.cycles, {0}};
    stream_sum(s, total.operations);
    s->windows = realloc(s->windows, (s->n_windows + 1) * sizeof *s->windows);
    s->windows[s->n_windows++] = total; /* running totals; differences are taken by the reader */
    s->oracle.base = s->oracle.cycles;
}

static void stream_turn(struct stream *s, const struct plan *plan) {
    if (s->on) stream_close_window(s);
    s->on = !s->on;
    s->left += (int64_t)(s->on ? plan->window : plan->period - plan->window);
}

static void stream_count(struct stream *s, uint32_t index) {
    if (index >= s->n_counts) {
        uint64_t n = s->n_counts ? s->n_counts : 4096;
        while (n <= index) n *= 2;
        s->counts = realloc(s->counts, n * sizeof *s->counts);
        memset(s->counts + s->n_counts, 0, (n - s->n_counts) * sizeof *s->counts);
        s->n_counts = n;
    }
    s->counts[index]++;
}

/* Returns whether a block belongs to the region of interest; what does not takes no time and is not counted. */
static int is_of_interest(struct stream *s, const struct block *b, const struct plan *plan) {
    calls_enter(&s->calls, b);
    if (b->skipped || s->calls.left) return 0;
    return plan->region == WITHIN ? s->calls.entered != 0 : plan->region == AFTER ? region_passed : 1;
}

static inline void stream_enter(struct stream *s, const struct block *b, const struct plan *plan) {
    stream_finish(s);
    if ((plan->region || plan->by_object) && !is_of_interest(s, b, plan)) return;
    stream_count(s, b->index);
    if (plan->period) {
        if (s->left <= 0) stream_turn(s, plan);
        s->left -= b->n_insns;
        if (!s->on) return;
    }
    s->pending = b;
}

#endif
