/* The oracle machine alone, for tests: a stream of steps and accesses that something else has made. */
#include "prepare.h"

void *harness_new(uint32_t limit, uint64_t rows_allowed) {
    struct oracle *o = malloc(sizeof *o);
    if (o) oracle_init(o, limit, rows_allowed);
    return o;
}

/* Both are changed; there is room for one more access. */
void harness_block(void *o, void *steps, uint32_t n, void *accesses, uint32_t n_accesses) {
    prepare(steps, n);
    oracle_block(o, steps, n, accesses, n_accesses);
}

uint64_t harness_cycles(void *o) { return ((struct oracle *)o)->cycles; }

uint32_t harness_row(void *o, uint64_t cycle, uint32_t component) {
    struct oracle *state = o;
    return cycle < state->rows_held ? state->rows[cycle * COMPONENTS + component] : 0;
}

void harness_free(void *o) {
    oracle_free(o);
    free(o);
}
