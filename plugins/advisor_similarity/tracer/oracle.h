/* The oracle machine: every step one cycle after the latest step that made one of its inputs.
 *
 * Shared by the plugin of the tracer and by the test harness. Locations and steps are numbered as in steps.py. */
#ifndef ORACLE_H
#define ORACLE_H

#include "memory.h"
#include "slots.h"

enum { OPERATE, LOAD, STORE, GATHER, ALSO };
/* As they come: works on parts of registers; happens only if its instruction touched memory. Added by prepare.h: has
 * more than two inputs or outputs; is none of the usual kind. */
enum { PARTS = 1, IF_TOUCHED = 2, WIDE = 4, RARE = 8 };
enum { GENERAL = 32, LOW_BYTE = 128, SECOND_BYTE = 160, COMPONENTS = 6, BUCKETS = 256 };
enum { NO_INSN = 0xFFFF };

struct step {
    uint8_t kind, component, flags, unused;
    uint8_t in[4], out[4];
    uint16_t insn, whole; /* set by prepare.h: a bit for each of the first 16 registers that is written wholly */
};

struct access {
    uint64_t address;
    uint16_t insn;
    uint16_t store;
    uint32_t size;
};

struct oracle {
    uint64_t whole[128];
    uint64_t part[3][GENERAL]; /* bits 0-7, 8-15, 16-63; only where split */
    uint32_t split; /* a bit for each general register; only the first 16 ever have parts */
    struct memory memory;
    struct slots slots;
    uint64_t base, cycles, loads, stores, unclaimed;
    uint64_t bucket[BUCKETS][8]; /* operations by component over cycles, 2^shift cycles each */
    uint32_t shift;
    uint32_t *rows; /* operations by component in every cycle, only on request */
    uint64_t rows_held, rows_allowed;
};

static void oracle_init(struct oracle *o, uint32_t limit, uint64_t rows_allowed) {
    memset(o, 0, sizeof *o);
    memory_init(&o->memory);
    o->slots.limit = limit;
    o->rows_allowed = rows_allowed;
}

static void oracle_free(struct oracle *o) {
    memory_free(&o->memory);
    slots_free(&o->slots);
    free(o->rows);
}

static void oracle_coarser(struct oracle *o) {
    for (int i = 0; i < BUCKETS / 2; i++)
        for (int k = 0; k < 8; k++) o->bucket[i][k] = o->bucket[2 * i][k] + o->bucket[2 * i + 1][k];
    memset(o->bucket[BUCKETS / 2], 0, sizeof o->bucket / 2);
    o->shift++;
}

static void oracle_row(struct oracle *o, uint64_t cycle, int component) {
    if (cycle >= o->rows_allowed) return;
    if (cycle >= o->rows_held) {
        uint64_t n = o->rows_held ? o->rows_held : 4096;
        while (n <= cycle) n *= 2;
        o->rows = realloc(o->rows, n * COMPONENTS * sizeof *o->rows);
        memset(o->rows + o->rows_held * COMPONENTS, 0, (n - o->rows_held) * COMPONENTS * sizeof *o->rows);
        o->rows_held = n;
    }
    o->rows[cycle * COMPONENTS + component]++;
}

/* `plain`: neither a limit nor rows; known when this is compiled. */
static inline __attribute__((always_inline)) uint64_t oracle_place(struct oracle *o, uint64_t ready, int component,
                                                                   const int plain) {
    uint64_t cycle = (ready > o->base ? ready : o->base); /* counted from 0 here */
    if (!plain && o->slots.limit) cycle = slots_place(&o->slots, cycle);
    if (cycle >= o->cycles) {
        o->cycles = cycle + 1;
        while (cycle >> o->shift >= BUCKETS) oracle_coarser(o);
    }
    o->bucket[cycle >> o->shift][component]++;
    if (!plain && o->rows_allowed) oracle_row(o, cycle, component);
    return cycle + 1;
}

static uint64_t oracle_get(struct oracle *o, uint8_t location) {
    if (location < LOW_BYTE) return o->whole[location];
    int part = location >= SECOND_BYTE, reg = location - (part ? SECOND_BYTE : LOW_BYTE);
    return o->split >> reg & 1 ? o->part[part][reg] : o->whole[reg];
}

static void oracle_set(struct oracle *o, uint8_t location, uint64_t cycle) {
    if (location < LOW_BYTE) {
        o->whole[location] = cycle;
        if (location < GENERAL) o->split &= ~(1u << location);
        return;
    }
    int part = location >= SECOND_BYTE, reg = location - (part ? SECOND_BYTE : LOW_BYTE);
    if (!(o->split >> reg & 1)) o->part[0][reg] = o->part[1][reg] = o->part[2][reg] = o->whole[reg];
    o->split |= 1u << reg;
    o->part[part][reg] = cycle;
    uint64_t latest = 0;
    for (int i = 0; i < 3; i++)
        if (o->part[i][reg] > latest) latest = o->part[i][reg];
    o->whole[reg] = latest;
}

static uint64_t oracle_ready_parts(struct oracle *o, const struct step *s) {
    uint64_t latest = 0, t;
    for (int i = 0; i < 4; i++)
        if ((t = oracle_get(o, s->in[i])) > latest) latest = t;
    return latest;
}

static inline uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline uint64_t oracle_ready(const struct oracle *o, const struct step *s) {
    uint64_t ready = later(o->whole[s->in[0]], o->whole[s->in[1]]);
    if (!(s->flags & WIDE)) return ready;
    return later(ready, later(o->whole[s->in[2]], o->whole[s->in[3]]));
}

static void oracle_done_parts(struct oracle *o, const struct step *s, uint64_t cycle) {
    for (int i = 0; i < 4; i++) oracle_set(o, s->out[i], cycle);
}

static inline void oracle_done(struct oracle *o, const struct step *s, uint64_t cycle) {
    if (o->split & s->whole) o->split &= ~(uint32_t)s->whole;
    o->whole[s->out[0]] = cycle;
    o->whole[s->out[1]] = cycle;
    if (!(s->flags & WIDE)) return;
    o->whole[s->out[2]] = cycle;
    o->whole[s->out[3]] = cycle;
}

/* An atomic instruction reports its one access as a store: it is read as well. */
static inline uint64_t oracle_loaded(struct oracle *o, const struct access *from, const struct access *to) {
    if (to == from + 1) return memory_read(&o->memory, from->address, from->size);
    uint64_t latest = 0, t;
    int loads = 0;
    for (const struct access *a = from; a < to; a++) loads += !a->store;
    for (const struct access *a = from; a < to; a++)
        if ((!a->store || !loads) && (t = memory_read(&o->memory, a->address, a->size)) > latest) latest = t;
    return latest;
}

/* The accesses of the instruction at hand, and what its steps so far have gathered. */
struct progress {
    const struct access *from, *to;
    uint64_t carried, cycle;
};

static inline void oracle_claim(struct oracle *o, struct progress *p, const struct step *s) {
    if (p->from != p->to && p->from->insn == s->insn) return;
    for (p->from = p->to; p->from->insn < s->insn; p->from++) o->unclaimed++;
    for (p->to = p->from; p->to->insn == s->insn; p->to++) {}
}

static inline void oracle_stored(struct oracle *o, const struct progress *p, uint64_t cycle) {
    for (const struct access *a = p->from; a < p->to; a++)
        if (a->store) memory_write(&o->memory, a->address, a->size, cycle);
}

static void oracle_rare(struct oracle *o, struct progress *p, const struct step *s) {
    if (s->kind == LOAD || s->kind == STORE || s->flags & IF_TOUCHED) oracle_claim(o, p, s);
    if (s->flags & IF_TOUCHED && p->from == p->to) return;
    if (s->kind == ALSO) return oracle_done_parts(o, s, p->cycle);
    p->carried = later(p->carried, oracle_ready_parts(o, s));
    if (s->kind == GATHER) return;
    if (s->kind == LOAD) p->carried = later(p->carried, oracle_loaded(o, p->from, p->to));
    p->cycle = oracle_place(o, p->carried, s->component, 0);
    p->carried = 0;
    oracle_done_parts(o, s, p->cycle);
    if (s->kind == STORE) oracle_stored(o, p, p->cycle);
}

static inline __attribute__((always_inline)) void oracle_steps(struct oracle *o, const struct step *steps, uint32_t n,
                                                              const struct access *accesses, const struct access *end,
                                                              const int plain) {
    struct progress p = {.from = end, .to = accesses};
    for (const struct step *s = steps; s < steps + n; s++) {
        if (s->flags & RARE) {
            oracle_rare(o, &p, s);
            continue;
        }
        uint64_t ready = oracle_ready(o, s);
        if (s->kind != OPERATE) oracle_claim(o, &p, s);
        if (s->kind == LOAD) ready = later(ready, oracle_loaded(o, p.from, p.to));
        uint64_t cycle = oracle_place(o, ready, s->component, plain);
        oracle_done(o, s, cycle);
        if (s->kind == STORE) oracle_stored(o, &p, cycle);
    }
    o->unclaimed += (uint64_t)(end - p.to);
}

/* Schedules the prepared steps of a block that was executed once; accesses stand in the order of its instructions, and there
 * is room for one more behind them. */
static void oracle_block(struct oracle *o, const struct step *steps, uint32_t n, struct access *accesses,
                         uint32_t n_accesses) {
    uint64_t stores = 0;
    for (uint32_t i = 0; i < n_accesses; i++) stores += accesses[i].store;
    o->stores += stores;
    o->loads += n_accesses - stores;
    accesses[n_accesses].insn = NO_INSN;
    if (o->slots.limit || o->rows_allowed)
        oracle_steps(o, steps, n, accesses, accesses + n_accesses, 0);
    else
        oracle_steps(o, steps, n, accesses, accesses + n_accesses, 1);
}

#endif
