/* A machine that carries out at most `limit` operations a cycle: the next cycle with room, from a given one on.
 *
 * Cycles are kept in pages of 4096; a page that is full is given back, and a union-find over pages skips runs of full
 * ones, so that memory grows with the cycles that still have room. */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdint.h>
#include <stdlib.h>

enum { SLOT_BITS = 12, SLOT_CYCLES = 1 << SLOT_BITS, SLOT_WORDS = SLOT_CYCLES / 64 };

struct slot_page {
    uint64_t full[SLOT_WORDS];
    uint32_t full_cycles;
    uint32_t used[SLOT_CYCLES];
};

struct slots {
    uint32_t limit;
    uint64_t pages;
    struct slot_page **page; /* NULL: untouched where next[i] == i, full otherwise */
    uint64_t *next;
};

static void slots_grow(struct slots *s, uint64_t needed) {
    uint64_t n = s->pages ? s->pages : 64;
    while (n <= needed) n *= 2;
    s->page = realloc(s->page, n * sizeof *s->page);
    s->next = realloc(s->next, n * sizeof *s->next);
    for (uint64_t i = s->pages; i < n; i++) {
        s->page[i] = NULL;
        s->next[i] = i;
    }
    s->pages = n;
}

static uint64_t slots_page(struct slots *s, uint64_t i) {
    uint64_t root = i;
    if (root + 1 >= s->pages) slots_grow(s, root + 1);
    while (s->next[root] != root) root = s->next[root];
    while (s->next[i] != root && i != root) {
        uint64_t after = s->next[i];
        s->next[i] = root;
        i = after;
    }
    return root;
}

/* The first cycle of the page with room at or after `from`, or SLOT_CYCLES. */
static inline uint32_t slots_within(const struct slot_page *p, uint32_t from) {
    uint32_t word = from / 64;
    uint64_t room = ~p->full[word] & (~0ull << (from % 64));
    while (!room && ++word < SLOT_WORDS) room = ~p->full[word];
    return room ? word * 64 + (uint32_t)__builtin_ctzll(room) : SLOT_CYCLES;
}

static inline void slots_take(struct slots *s, uint64_t page, uint32_t at) {
    struct slot_page *p = s->page[page];
    if (++p->used[at] < s->limit) return;
    p->full[at / 64] |= 1ull << (at % 64);
    if (++p->full_cycles < SLOT_CYCLES) return;
    free(p);
    s->page[page] = NULL;
    if (page + 1 >= s->pages) slots_grow(s, page + 1);
    s->next[page] = page + 1;
}

static inline uint64_t slots_place(struct slots *s, uint64_t cycle) {
    uint32_t from = cycle % SLOT_CYCLES;
    for (uint64_t wanted = cycle >> SLOT_BITS;; wanted++, from = 0) {
        uint64_t page = slots_page(s, wanted);
        if (page != wanted) from = 0;
        wanted = page;
        if (!s->page[page]) s->page[page] = calloc(1, sizeof **s->page);
        uint32_t at = slots_within(s->page[page], from);
        if (at < SLOT_CYCLES) {
            slots_take(s, page, at);
            return (page << SLOT_BITS) + at;
        }
    }
}

static void slots_free(struct slots *s) {
    for (uint64_t i = 0; i < s->pages; i++) free(s->page[i]);
    free(s->page);
    free(s->next);
}

#endif
