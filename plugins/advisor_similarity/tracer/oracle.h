/* The oracle machine: every step one cycle after the latest step that made one of its inputs.
 *
 * Shared by the plugin of the tracer and by the test harness. Locations and steps are numbered as in steps.py. */
#ifndef ORACLE_H
#define ORACLE_H

#include "memory.h"
#include "slots.h"

enum { OPERATE, LOAD, STORE, GATHER, ALSO };
enum { PARTS = 1, IF_TOUCHED = 2 };
enum { GENERAL = 32, LOW_BYTE = 128, SECOND_BYTE = 160, COMPONENTS = 6, BUCKETS = 256 };

struct step {
    uint8_t kind, component, flags, unused;
    uint8_t in[4], out[4];
    uint16_t insn, unused2;
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
    uint8_t split[GENERAL];
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

static inline uint64_t oracle_place(struct oracle *o, uint64_t ready, int component) {
    uint64_t cycle = (ready > o->base ? ready : o->base); /* counted from 0 here */
    if (o->slots.limit) cycle = slots_place(&o->slots, cycle);
    if (cycle >= o->cycles) o->cycles = cycle + 1;
    while (cycle >> o->shift >= BUCKETS) oracle_coarser(o);
    o->bucket[cycle >> o->shift][component]++;
    if (o->rows_allowed) oracle_row(o, cycle, component);
    return cycle + 1;
}

static uint64_t oracle_get(struct oracle *o, uint8_t location) {
    if (location < LOW_BYTE) return o->whole[location];
    int part = location >= SECOND_BYTE, reg = location - (part ? SECOND_BYTE : LOW_BYTE);
    return o->split[reg] ? o->part[part][reg] : o->whole[reg];
}

static void oracle_set(struct oracle *o, uint8_t location, uint64_t cycle) {
    if (location < LOW_BYTE) {
        o->whole[location] = cycle;
        if (location < GENERAL) o->split[location] = 0;
        return;
    }
    int part = location >= SECOND_BYTE, reg = location - (part ? SECOND_BYTE : LOW_BYTE);
    if (!o->split[reg]) o->part[0][reg] = o->part[1][reg] = o->part[2][reg] = o->whole[reg];
    o->split[reg] = 1;
    o->part[part][reg] = cycle;
    uint64_t latest = 0;
    for (int i = 0; i < 3; i++)
        if (o->part[i][reg] > latest) latest = o->part[i][reg];
    o->whole[reg] = latest;
}

static inline uint64_t oracle_ready(struct oracle *o, const struct step *s) {
    uint64_t a, b;
    if (s->flags & PARTS) {
        uint64_t latest = 0;
        for (int i = 0; i < 4; i++)
            if ((a = oracle_get(o, s->in[i])) > latest) latest = a;
        return latest;
    }
    a = o->whole[s->in[0]] > o->whole[s->in[1]] ? o->whole[s->in[0]] : o->whole[s->in[1]];
    b = o->whole[s->in[2]] > o->whole[s->in[3]] ? o->whole[s->in[2]] : o->whole[s->in[3]];
    return a > b ? a : b;
}

static inline void oracle_done(struct oracle *o, const struct step *s, uint64_t cycle) {
    for (int i = 0; i < 4; i++) {
        if (s->flags & PARTS)
            oracle_set(o, s->out[i], cycle);
        else {
            o->whole[s->out[i]] = cycle;
            if (s->out[i] < GENERAL) o->split[s->out[i]] = 0;
        }
    }
}

/* An atomic instruction reports its one access as a store: it is read as well. */
static inline uint64_t oracle_loaded(struct oracle *o, const struct access *from, const struct access *to) {
    uint64_t latest = 0, t;
    int loads = 0;
    for (const struct access *a = from; a < to; a++) loads += !a->store;
    for (const struct access *a = from; a < to; a++)
        if ((!a->store || !loads) && (t = memory_read(&o->memory, a->address, a->size)) > latest) latest = t;
    return latest;
}

/* Schedules the steps of a block that was executed once; accesses stand in the order of its instructions. */
static void oracle_block(struct oracle *o, const struct step *steps, uint32_t n, const struct access *accesses,
                         uint32_t n_accesses) {
    const struct access *from = accesses, *to = accesses, *end = accesses + n_accesses;
    uint64_t carried = 0, cycle = 0;
    for (const struct step *s = steps; s < steps + n; s++) {
        if (s->kind == LOAD || s->kind == STORE || s->flags & IF_TOUCHED) {
            if (to == accesses || from == to || from->insn != s->insn) {
                for (from = to; from < end && from->insn < s->insn; from++) o->unclaimed++;
                for (to = from; to < end && to->insn == s->insn; to++) {}
            }
            if (from == to && s->flags & IF_TOUCHED) continue;
        }
        if (s->kind == ALSO) {
            oracle_done(o, s, cycle);
            continue;
        }
        uint64_t ready = oracle_ready(o, s);
        if (carried > ready) ready = carried;
        carried = 0;
        if (s->kind == GATHER) {
            carried = ready;
            continue;
        }
        if (s->kind == LOAD) {
            uint64_t t = oracle_loaded(o, from, to);
            if (t > ready) ready = t;
        }
        cycle = oracle_place(o, ready, s->component);
        oracle_done(o, s, cycle);
        if (s->kind != STORE) continue;
        for (const struct access *a = from; a < to; a++)
            if (a->store) memory_write(&o->memory, a->address, a->size, cycle);
    }
    for (from = to; from < end; from++) o->unclaimed++;
    for (uint32_t i = 0; i < n_accesses; i++) *(accesses[i].store ? &o->stores : &o->loads) += 1;
}

#endif
