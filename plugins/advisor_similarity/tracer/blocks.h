/* Translated blocks: the steps of their instructions in one array. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include "book.h"
#include "prepare.h"

struct block {
    uint64_t address;
    uint32_t index, n_insns, n_steps;
    struct step *steps;
    uint32_t *ids;
    uint64_t end;                /* address behind its last instruction */
    uint8_t skipped, entry, calls; /* of no interest (see calls.h); begins, or ends in, a function call */
    struct block *before;
};

static struct block *block_new(struct book *book, uint64_t address, const struct code *codes, uint32_t n) {
    static uint32_t blocks;
    book_learn(book, codes, n);
    struct block *b = calloc(1, sizeof *b);
    *b = (struct block){.address = address, .index = blocks++, .n_insns = n, .ids = malloc(n * sizeof *b->ids)};
    for (uint32_t i = 0; i < n; i++) b->n_steps += (*book_slot(book, &codes[i]))->n_steps;
    b->steps = malloc((b->n_steps + 1) * sizeof *b->steps);
    struct step *to = b->steps;
    for (uint32_t i = 0; i < n; i++) {
        const struct entry *e = *book_slot(book, &codes[i]);
        b->ids[i] = e->id;
        for (uint32_t k = 0; k < e->n_steps; k++) {
            *to = e->steps[k];
            to++->insn = (uint16_t)i;
        }
    }
    prepare(b->steps, b->n_steps);
    return b;
}

#endif
