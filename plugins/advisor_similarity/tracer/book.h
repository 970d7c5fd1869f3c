/* What instructions do, asked of the process that started the tracer, once for each sequence of bytes. */
#ifndef BOOK_H
#define BOOK_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "oracle.h"

enum { CODE_BYTES = 15 };

struct code {
    uint8_t length, bytes[CODE_BYTES];
};

struct entry {
    struct code code;
    uint32_t id, n_steps;
    struct step *steps;
};

struct book {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    int connection;
    struct entry **slots;
    uint32_t size, used;
};

static void book_fail(const char *what) {
    fprintf(stderr, "gapwatch: the tracer lost its decoder (%s): %s\n", what, strerror(errno));
    _exit(125);
}

static void book_send(struct book *b, const void *data, size_t n) {
    for (const char *from = data; n;) {
        ssize_t done = send(b->connection, from, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) book_fail("send");
        from += done;
        n -= (size_t)done;
    }
}

static void book_receive(struct book *b, void *data, size_t n) {
    for (char *to = data; n;) {
        ssize_t done = recv(b->connection, to, n, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) book_fail("receive");
        to += done;
        n -= (size_t)done;
    }
}

static uint64_t code_hash(const struct code *c) {
    uint64_t h = 0xcbf29ce484222325ull;
    for (unsigned i = 0; i < c->length; i++) h = (h ^ c->bytes[i]) * 0x100000001b3ull;
    return h ^ h >> 32;
}

static struct entry **book_slot(struct book *b, const struct code *c) {
    uint32_t i = (uint32_t)code_hash(c) & (b->size - 1);
    while (b->slots[i] && memcmp(&b->slots[i]->code, c, sizeof *c)) i = (i + 1) & (b->size - 1);
    return &b->slots[i];
}

static void book_grow(struct book *b) {
    struct entry **old = b->slots;
    uint32_t n = b->size;
    b->size = n ? 2 * n : 1 << 14;
    b->slots = calloc(b->size, sizeof *b->slots);
    for (uint32_t i = 0; i < n; i++)
        if (old[i]) *book_slot(b, &old[i]->code) = old[i];
    free(old);
}

/* Reads one answer: number, count of steps, steps. */
static void book_add(struct book *b, const struct code *c) {
    if (2 * (b->used + 1) > b->size) book_grow(b);
    struct entry *e = calloc(1, sizeof *e);
    uint32_t head[2];
    book_receive(b, head, sizeof head);
    *e = (struct entry){.code = *c, .id = head[0], .n_steps = head[1]};
    e->steps = malloc((head[1] + 1) * sizeof *e->steps);
    book_receive(b, e->steps, head[1] * sizeof *e->steps);
    *book_slot(b, c) = e;
    b->used++;
}

static void book_connect(struct book *b) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, b->path, sizeof b->path);
    b->connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (b->connection < 0 || connect(b->connection, (struct sockaddr *)&address, sizeof address)) book_fail("connect");
}

/* Makes sure that all of n instructions are in the book. */
static void book_learn(struct book *b, const struct code *codes, uint32_t n) {
    struct code unknown[512];
    uint32_t count = 0;
    if (!b->size) book_grow(b);
    for (uint32_t i = 0; i < n && count < 512; i++) {
        int seen = *book_slot(b, &codes[i]) != NULL;
        for (uint32_t k = 0; k < count && !seen; k++) seen = !memcmp(&unknown[k], &codes[i], sizeof *codes);
        if (!seen) unknown[count++] = codes[i];
    }
    if (!count) return;
    if (b->connection < 0) book_connect(b);
    book_send(b, &count, sizeof count);
    book_send(b, unknown, count * sizeof *unknown);
    for (uint32_t i = 0; i < count; i++) book_add(b, &unknown[i]);
}

#endif
