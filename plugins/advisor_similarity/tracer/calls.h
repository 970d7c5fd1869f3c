/* Calls and returns of a thread, as far as a region of interest needs them.
 *
 * A block that ends in a call leaves the address behind it on a stack; the thread has returned once it is there. So
 * jumps from one function to another, stubs of the linker and longjmp are no harm. */
#ifndef CALLS_H
#define CALLS_H

#include "blocks.h"

enum { MAX_CALLS = 1024, FORGOTTEN_CALLS = 64 };

/* How a block is of no interest: itself, or with all that it calls. */
enum { ITSELF = 1, WITH_CALLEES };

struct calls {
    uint64_t returns[MAX_CALLS];
    uint32_t depth; /* may exceed MAX_CALLS: the innermost ones are then not kept */
    uint32_t entered; /* one more than the depth at which the region began, 0: outside */
    uint32_t left;    /* the same for a call of a library of no interest */
    const struct block *previous;
};

/* Set once in all threads when the function of interest has returned for the first time. */
static volatile int region_passed;

static int is_call(const struct code *c, int is_arm) {
    if (is_arm) {
        uint32_t word;
        memcpy(&word, c->bytes, sizeof word);
        return (word & 0xfc000000u) == 0x94000000u || (word & 0xfffffc1fu) == 0xd63f0000u;
    }
    const uint8_t *byte = c->bytes, *end = c->bytes + c->length;
    while (byte < end && ((*byte & 0xf0) == 0x40 || *byte == 0x66 || *byte == 0xf2 || *byte == 0xf3 || *byte == 0x3e))
        byte++;
    if (byte < end && *byte == 0xe8) return 1;
    return byte + 1 < end && *byte == 0xff && (byte[1] >> 3 & 7) == 2;
}

static void calls_enter(struct calls *c, const struct block *b) {
    const struct block *previous = c->previous;
    c->previous = b;
    if (previous && previous->calls) {
        if (c->depth < MAX_CALLS) c->returns[c->depth] = previous->end;
        c->depth++;
    } else {
        uint32_t lowest = c->depth > FORGOTTEN_CALLS ? c->depth - FORGOTTEN_CALLS : 0;
        for (uint32_t at = c->depth < MAX_CALLS ? c->depth : MAX_CALLS; at > lowest; at--)
            if (c->returns[at - 1] == b->address) {
                c->depth = at - 1;
                break;
            }
    }
    if (c->entered && c->depth + 1 < c->entered) {
        c->entered = 0;
        region_passed = 1;
    }
    /* the dynamic linker ends by a jump to the program, or to a function that it has found */
    if (c->left && c->depth + (b->skipped == WITH_CALLEES) < c->left) c->left = 0;
    if (b->skipped == WITH_CALLEES && !c->left) c->left = c->depth + 1;
    if (b->entry && !c->entered) c->entered = c->depth + 1;
}

#endif
