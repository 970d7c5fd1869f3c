/* Steps of a block made ready for the scheduler: what changes nothing is left out, what is rare is marked. */
#ifndef PREPARE_H
#define PREPARE_H

#include "oracle.h"

enum { CARRY = 96, ZERO_SIGN = 98, SINK = 126, ALWAYS = 127 };

/* Leaves out the writing of flags that a later instruction of the block writes again before anything reads them. */
static void drop_dead_flags(struct step *steps, uint32_t n) {
    uint8_t dead[256] = {0};
    for (struct step *s = steps + n; s-- > steps;) {
        for (int k = 0; k < 4; k++) {
            uint8_t out = s->out[k];
            if (out < CARRY || out > ZERO_SIGN) continue;
            if (dead[out]) s->out[k] = SINK;
            else if (!(s->flags & IF_TOUCHED)) dead[out] = 1;
        }
        for (int k = 0; k < 4; k++) dead[s->in[k]] = 0;
    }
}

/* Puts the places that are used first; returns how many. */
static int used_first(uint8_t *places, uint8_t unused) {
    int n = 0;
    for (int k = 0; k < 4; k++)
        if (places[k] != unused) places[n++] = places[k];
    for (int k = n; k < 4; k++) places[k] = unused;
    return n;
}

static void prepare(struct step *steps, uint32_t n) {
    drop_dead_flags(steps, n);
    for (struct step *s = steps; s < steps + n; s++) {
        int inputs = used_first(s->in, ALWAYS), outputs = used_first(s->out, SINK);
        int gathered = s > steps && s[-1].kind == GATHER, followed = s + 1 < steps + n && s[1].kind == ALSO;
        for (int k = 0; k < outputs; k++)
            if (s->out[k] < 16) s->whole |= (uint16_t)(1 << s->out[k]);
        if (inputs > 2 || outputs > 2) s->flags |= WIDE;
        if (s->flags & (PARTS | IF_TOUCHED) || s->kind >= GATHER || gathered || followed) s->flags |= RARE;
    }
}

#endif
