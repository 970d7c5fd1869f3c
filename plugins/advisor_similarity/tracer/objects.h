/* Files that the program is made of: which of them count, and where in them a region of interest begins.
 *
 * The process that started the tracer decides, once for each file; see `regions.py`. */
#ifndef OBJECTS_H
#define OBJECTS_H

#include <limits.h>

#include "book.h"

struct object {
    char path[PATH_MAX];
    uint32_t skipped, n_entries;
    uint64_t *entries; /* where functions of interest begin, as offsets in the file */
    struct object *before;
};

struct mapping {
    uint64_t start, end, offset;
    const struct object *object; /* NULL: no file */
};

static struct object *objects;

static const struct object *object_ask(struct book *book, const char *path) {
    for (struct object *o = objects; o; o = o->before)
        if (!strcmp(o->path, path)) return o;
    struct object *o = calloc(1, sizeof *o);
    uint32_t head[2] = {0, (uint32_t)strlen(path)}; /* a question about no instruction is one about a file */
    snprintf(o->path, sizeof o->path, "%s", path);
    if (book->connection < 0) book_connect(book);
    book_send(book, head, sizeof head);
    book_send(book, path, head[1]);
    book_receive(book, head, sizeof head);
    o->skipped = head[0];
    o->n_entries = head[1];
    o->entries = malloc((o->n_entries + 1) * sizeof *o->entries);
    book_receive(book, o->entries, o->n_entries * sizeof *o->entries);
    o->before = objects;
    return objects = o;
}

/* Returns what lies at an address; the answer for the last one is kept, as blocks of one file follow each other. */
static struct mapping mapping_of(struct book *book, uint64_t address) {
    static struct mapping last;
    if (last.start <= address && address < last.end) return last;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    last = (struct mapping){address, address + 1, 0, NULL};
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long start, end, offset;
        int at = 0;
        if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &start, &end, &offset, &at) < 3) continue;
        if (address < start || address >= end) continue;
        line[strcspn(line, "\n")] = 0;
        last = (struct mapping){start, end, offset, at && line[at] == '/' ? object_ask(book, line + at) : NULL};
        break;
    }
    if (maps) fclose(maps);
    return last;
}

static int is_entry(const struct mapping *m, uint64_t address) {
    uint64_t offset = address - m->start + m->offset;
    for (uint32_t i = 0; m->object && i < m->object->n_entries; i++)
        if (m->object->entries[i] == offset) return 1;
    return 0;
}

#endif
