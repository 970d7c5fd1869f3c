/* When every byte of memory became available: pages that are as fine as what was stored in them.
 *
 * A page begins with cells of 8 bytes. A store that covers only part of a cell makes its page finer, so that all
 * bytes of a cell always have the same time and a load takes the latest of the cells that it touches: exact to the
 * byte, at the cost of 8 bytes per cell of the pages that were stored to, however long the run. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BITS = 12, PAGE_SIZE_ = 1 << PAGE_BITS, NEAR_PAGES = 1024 };

struct page {
    uint64_t number;
    uint32_t shift;
    uint64_t *cells;
};

/* A copy of what a page says, for those that were touched last. */
struct near {
    uint64_t number;
    uint64_t *cells;
    uint32_t shift;
};

struct memory {
    struct page **slots; /* open addressing; size is a power of two */
    uint64_t size, used;
    struct near near[NEAR_PAGES];
};

static inline uint64_t page_hash(uint64_t number) { return (number * 0x9E3779B97F4A7C15ull) >> 20; }

static struct page **page_slot(struct memory *m, uint64_t number) {
    uint64_t i = page_hash(number) & (m->size - 1);
    while (m->slots[i] && m->slots[i]->number != number) i = (i + 1) & (m->size - 1);
    return &m->slots[i];
}

static void memory_init(struct memory *m) {
    memset(m, 0, sizeof *m);
    m->size = 1024;
    m->slots = calloc(m->size, sizeof *m->slots);
}

static void memory_free(struct memory *m) {
    for (uint64_t i = 0; i < m->size; i++)
        if (m->slots[i]) {
            free(m->slots[i]->cells);
            free(m->slots[i]);
        }
    free(m->slots);
}

static void memory_grow(struct memory *m) {
    struct page **old = m->slots;
    uint64_t n = m->size;
    m->size *= 2;
    m->slots = calloc(m->size, sizeof *m->slots);
    for (uint64_t i = 0; i < n; i++)
        if (old[i]) *page_slot(m, old[i]->number) = old[i];
    free(old);
}

static struct page *page_add(struct memory *m, uint64_t number) {
    if (2 * (m->used + 1) > m->size) memory_grow(m);
    struct page *p = malloc(sizeof *p);
    *p = (struct page){.number = number, .shift = 3, .cells = calloc(PAGE_SIZE_ >> 3, sizeof(uint64_t))};
    *page_slot(m, number) = p;
    m->used++;
    return p;
}

static struct page *page_find(struct memory *m, uint64_t number) { return *page_slot(m, number); }

static struct near *near_fill(struct memory *m, const struct page *p) {
    struct near *n = &m->near[p->number % NEAR_PAGES];
    *n = (struct near){p->number, p->cells, p->shift};
    return n;
}

/* What is known of a page; NULL where nothing was ever stored. */
static inline struct near *near_find(struct memory *m, uint64_t number) {
    struct near *n = &m->near[number % NEAR_PAGES];
    if (n->number == number && n->cells) return n;
    const struct page *p = page_find(m, number);
    return p ? near_fill(m, p) : NULL;
}

static struct near *page_refine(struct memory *m, uint64_t number, uint32_t shift) {
    struct page *p = page_find(m, number);
    uint32_t n = PAGE_SIZE_ >> shift, by = p->shift - shift;
    uint64_t *cells = malloc(n * sizeof *cells);
    for (uint32_t i = 0; i < n; i++) cells[i] = p->cells[i >> by];
    free(p->cells);
    p->cells = cells;
    p->shift = shift;
    return near_fill(m, p);
}

static inline uint64_t memory_read(struct memory *m, uint64_t address, uint32_t size) {
    uint64_t latest = 0;
    while (size) {
        uint32_t offset = address % PAGE_SIZE_, part = PAGE_SIZE_ - offset;
        if (part > size) part = size;
        const struct near *p = near_find(m, address >> PAGE_BITS);
        if (p) {
            uint32_t last = (offset + part - 1) >> p->shift;
            for (uint32_t i = offset >> p->shift; i <= last; i++)
                if (p->cells[i] > latest) latest = p->cells[i];
        }
        address += part;
        size -= part;
    }
    return latest;
}

static inline void memory_write(struct memory *m, uint64_t address, uint32_t size, uint64_t cycle) {
    while (size) {
        uint32_t offset = address % PAGE_SIZE_, part = PAGE_SIZE_ - offset, edges;
        if (part > size) part = size;
        struct near *p = near_find(m, address >> PAGE_BITS);
        if (!p) p = near_fill(m, page_add(m, address >> PAGE_BITS));
        edges = offset | (offset + part);
        if (edges & ((1u << p->shift) - 1)) p = page_refine(m, address >> PAGE_BITS, edges & 3 ? 0 : 2);
        uint32_t last = (offset + part - 1) >> p->shift;
        for (uint32_t i = offset >> p->shift; i <= last; i++) p->cells[i] = cycle;
        address += part;
        size -= part;
    }
}

#endif
