/* Follows the loops that a thread is in through the words of the tracer: which loops hold each access, and the iteration
 * of each of them. A place is left when its function is left, or when something of the function outside of it happens. */
#include <stdint.h>

enum { MOST_ENTRIES = 64, MOST_PATHS = 1 << 14 };

struct code {
    const int32_t *loop_of, *function_of;             /* by number of access */
    const int32_t *parent, *loop_function;            /* by loop */
    const int32_t *exit_function;                     /* by exit */
    int32_t loops, exits;
};
struct state {
    int32_t size, paths, deepest;
    int32_t loop[MOST_ENTRIES], turn[MOST_ENTRIES], path[MOST_ENTRIES];
    int32_t path_parent[MOST_PATHS], path_loop[MOST_PATHS];
};
struct columns {
    int32_t *path, *turns, *number, *place; /* by access; `width` turns each; number << 1 | whether it stores */
    int64_t *address;
    int32_t *head_path, *head_turn;                    /* by iteration of an outermost loop */
    int64_t *head_count;
    int64_t accesses, heads, width;
};

static int holds(const struct code *c, int outer, int inner) {
    for (; inner >= 0; inner = c->parent[inner])
        if (inner == outer) return 1;
    return 0;
}

/* Leave the loops of a function that do not hold `loop`, and what was entered from them. */
static void leave(const struct code *c, struct state *s, int function, int loop) {
    for (int k = 0; k < s->size; k++)
        if (c->loop_function[s->loop[k]] == function && !holds(c, s->loop[k], loop)) {
            s->size = k;
            return;
        }
}

static int path_of(struct state *s, int parent, int loop) {
    for (int k = 0; k < s->paths; k++)
        if (s->path_parent[k] == parent && s->path_loop[k] == loop) return k;
    if (s->paths == MOST_PATHS) return MOST_PATHS - 1;
    s->path_parent[s->paths] = parent, s->path_loop[s->paths] = loop;
    return s->paths++;
}

static void reach(const struct code *c, struct state *s, int loop) {
    leave(c, s, c->loop_function[loop], loop);
    for (int k = s->size - 1; k >= 0; k--)
        if (s->loop[k] == loop) {
            s->size = k + 1;
            s->turn[k]++;
            return;
        }
    if (s->size == MOST_ENTRIES) return;
    int k = s->size++;
    s->loop[k] = loop, s->turn[k] = 0, s->path[k] = path_of(s, k ? s->path[k - 1] : -1, loop);
}

/* Go through `n` words; `c` is NULL where only the state is wanted. */
int64_t locate_events(const struct code *code, struct state *s, const uint64_t *words, int64_t n, struct columns *c) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t w = words[i];
        if (w >> 63) {
            int number = (int)(w >> 48 & 0x7fff);
            if (number < code->loops) {
                reach(code, s, number);
                if (c && s->size == 1) {
                    c->head_path[c->heads] = s->path[0], c->head_turn[c->heads] = s->turn[0];
                    c->head_count[c->heads++] = (int64_t)(w & ((1ull << 48) - 1));
                }
            } else if (number < code->loops + code->exits) {
                leave(code, s, code->exit_function[number - code->loops], -1);
            }
            continue;
        }
        int number = (int)(w >> 48 & 0x3fff);
        leave(code, s, code->function_of[number], code->loop_of[number]);
        if (s->size > s->deepest) s->deepest = s->size;
        if (!c) continue;
        int64_t k = c->accesses++;
        c->path[k] = s->size ? s->path[s->size - 1] : -1;
        for (int d = 0; d < c->width; d++) c->turns[k * c->width + d] = d < s->size ? s->turn[d] : 0;
        c->number[k] = (int32_t)(number << 1 | (int)(w >> 62 & 1));
        c->address[k] = (int64_t)(w & ((1ull << 48) - 1));
        c->place[k] = (int32_t)i;
    }
    return c ? c->accesses : 0;
}

/* Send all accesses of a thread through a cache of `sets` (a power of two) of `ways` lines, least recently used line
 * replaced first, and count misses by instruction and object (`owner`, by word). `tags` (sets * ways, zeros) holds the lines, the latest
 * first; an access over two lines that misses in either is one miss, as valgrind counts. */
void count_misses(const uint64_t *words, int64_t n, const uint8_t *sizes, const int32_t *owner, int64_t all,
                  int line_bits, int64_t sets, int64_t ways, uint64_t *tags, int64_t *misses) {
    for (int64_t i = 0; i < n; i++) {
        if (words[i] >> 63) continue;
        int64_t number = (int64_t)(words[i] >> 48 & 0x3fff), address = (int64_t)(words[i] & ((1ull << 48) - 1));
        uint64_t last = (uint64_t)(address + (sizes[number] ? sizes[number] : 1) - 1) >> line_bits;
        int missed = 0;
        for (uint64_t line = (uint64_t)address >> line_bits; line <= last; line++) {
            uint64_t *set = tags + (int64_t)(line & (uint64_t)(sets - 1)) * ways;
            int64_t way = 0;
            while (way < ways - 1 && set[way] != line + 1) way++;
            missed |= set[way] != line + 1;
            for (; way > 0; way--) set[way] = set[way - 1];
            set[0] = line + 1;
        }
        if (missed) misses[number * (all + 1) + (owner[i] >= 0 ? owner[i] : all)]++;
    }
}
