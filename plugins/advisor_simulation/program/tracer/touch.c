/* Which allocation the accesses of a run go to: memory in pieces of 16 bytes, each of the latest allocation that holds it. */
#include <stdint.h>
#include <stdlib.h>

enum { PAGE_BITS = 12, PIECE_BITS = 4, PIECES = 1 << (PAGE_BITS - PIECE_BITS) };

/* A page: what holds all of it, or (where `piece` is set) each piece, -1 for nothing; accesses to nothing. */
struct page {
    uint64_t number;
    int32_t whole, *piece;
    uint64_t loose, low, high;
};
struct memory {
    struct page *page;
    uint64_t size, used;
};

struct memory *make_memory(void) { return calloc(1, sizeof(struct memory)); }

void free_memory(struct memory *m) {
    for (uint64_t k = 0; k < m->size; k++) free(m->page[k].piece);
    free(m->page);
    free(m);
}

static struct page *find_page(struct memory *m, uint64_t number) {
    if (m->used * 2 >= m->size) {
        struct page *old = m->page;
        uint64_t before = m->size;
        m->size = before ? before * 4 : 1 << 12;
        m->page = calloc(m->size, sizeof *m->page);
        m->used = 0;
        for (uint64_t k = 0; k < before; k++)
            if (old[k].number) *find_page(m, old[k].number) = old[k];
        free(old);
    }
    uint64_t at = number * 0x9e3779b97f4a7c15ull >> 20 & (m->size - 1);
    while (m->page[at].number && m->page[at].number != number) at = (at + 1) & (m->size - 1);
    if (!m->page[at].number) {
        m->page[at].number = number, m->page[at].whole = -1;
        m->used++;
    }
    return m->page + at;
}

/* Give `size` bytes to an allocation. */
void allocate(struct memory *m, uint64_t address, uint64_t size, int32_t allocation) {
    uint64_t from = address >> PIECE_BITS, to = (address + size + 15) >> PIECE_BITS;
    while (from < to) {
        struct page *page = find_page(m, from / PIECES);
        uint64_t end = (from / PIECES + 1) * PIECES;
        end = end < to ? end : to;
        if (end - from == PIECES) {
            free(page->piece);
            page->piece = NULL, page->whole = allocation;
        } else {
            if (!page->piece) {
                page->piece = malloc(PIECES * sizeof *page->piece);
                for (int k = 0; k < PIECES; k++) page->piece[k] = page->whole;
            }
            for (uint64_t k = from; k < end; k++) page->piece[k % PIECES] = allocation;
        }
        from = end;
    }
}

/* Write the allocation of each access among `n` words to `owner`, -1 for none; accesses to none are counted by page. */
void touch(struct memory *m, const uint64_t *words, int64_t n, int32_t *owner) {
    struct page *page = NULL;
    for (int64_t i = 0; i < n; i++) {
        owner[i] = -1;
        if (words[i] >> 63) continue;
        uint64_t address = words[i] & ((1ull << 48) - 1), number = address >> PAGE_BITS;
        if (!page || page->number != number) page = find_page(m, number);
        owner[i] = page->piece ? page->piece[address >> PIECE_BITS & (PIECES - 1)] : page->whole;
        if (owner[i] >= 0) continue;
        page->low = page->loose && page->low < address ? page->low : address;
        page->high = page->high > address ? page->high : address;
        page->loose++;
    }
}

/* Return how many pages have accesses to nothing, and write (first address, last address, accesses) of each. */
int64_t list_loose(const struct memory *m, uint64_t *rows) {
    int64_t found = 0;
    for (uint64_t k = 0; k < m->size; k++)
        if (m->page[k].loose) {
            if (rows) rows[3 * found] = m->page[k].low, rows[3 * found + 1] = m->page[k].high, rows[3 * found + 2] = m->page[k].loose;
            found++;
        }
    return found;
}
