/* What a process leaves behind: a text file with the streams, the blocks and the map of its memory. */
#ifndef RESULTS_H
#define RESULTS_H

#include <limits.h>

#include "streams.h"

static void result_name(char *name, const char *folder, int number, const char *ending) {
    if (snprintf(name, PATH_MAX, "%s/%d-%d%s", folder, getpid(), number, ending) >= PATH_MAX) *name = 0;
}

static void write_rows(const struct stream *s, const char *folder, int number, unsigned index) {
    char name[PATH_MAX];
    char ending[32];
    snprintf(ending, sizeof ending, "-%u.rows", index);
    result_name(name, folder, number, ending);
    FILE *out = fopen(name, "w");
    if (!out) return;
    uint64_t n = s->oracle.cycles < s->oracle.rows_held ? s->oracle.cycles : s->oracle.rows_held;
    fwrite(s->oracle.rows, COMPONENTS * sizeof(uint32_t), n, out);
    fclose(out);
}

static void write_numbers(FILE *out, const char *word, const uint64_t *numbers, int n) {
    fputs(word, out);
    for (int i = 0; i < n; i++) fprintf(out, " %llu", (unsigned long long)numbers[i]);
    fputc('\n', out);
}

static void write_stream(FILE *out, const struct stream *s) {
    const struct oracle *o = &s->oracle;
    uint64_t head[] = {o->cycles, o->loads, o->stores, o->unclaimed, s->lost, o->shift, o->memory.used};
    write_numbers(out, "stream", head, 7);
    for (uint64_t i = 0; i < BUCKETS && i << o->shift < o->cycles; i++) write_numbers(out, "bucket", o->bucket[i], COMPONENTS);
    for (uint32_t i = 0; i < s->n_windows; i++) write_numbers(out, "window", &s->windows[i].cycles, 1 + COMPONENTS);
    for (uint64_t i = 0; i < s->n_counts; i++)
        if (s->counts[i]) write_numbers(out, "count", (uint64_t[]){i, s->counts[i]}, 2);
}

static void write_block(FILE *out, const struct block *b) {
    fprintf(out, "block %u %llu", b->index, (unsigned long long)b->address);
    for (uint32_t i = 0; i < b->n_insns; i++) fprintf(out, " %u", b->ids[i]);
    fputc('\n', out);
}

static void write_map(FILE *out) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    while (maps && fgets(line, sizeof line, maps)) fprintf(out, "map %s", line);
    if (maps) fclose(maps);
}

static void drop_results(const char *folder, int number) {
    char name[PATH_MAX];
    result_name(name, folder, number, ".result");
    unlink(name);
}

/* Writes `folder/pid-number.result`, complete or not at all. */
static void write_results(struct stream *const *streams, const struct block *blocks, const char *folder, int number,
                          const char *reason) {
    char name[PATH_MAX], part[PATH_MAX];
    result_name(name, folder, number, ".result");
    result_name(part, folder, number, ".part");
    FILE *out = fopen(part, "w");
    if (!out) return;
    fprintf(out, "image %d %d %s\n", getpid(), getppid(), reason);
    unsigned written = 0;
    for (int i = 0; i < MAX_STREAMS; i++)
        for (struct stream *s = streams[i]; s; s = s->before) {
            stream_finish(s);
            if (s->on && s->n_windows) stream_close_window(s);
            write_stream(out, s);
            if (s->oracle.rows) write_rows(s, folder, number, written);
            written++;
        }
    for (const struct block *b = blocks; b; b = b->before) write_block(out, b);
    write_map(out);
    fputs("end\n", out);
    if (!fclose(out)) rename(part, name);
}

#endif
