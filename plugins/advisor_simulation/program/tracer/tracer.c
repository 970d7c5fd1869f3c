/* Runs inside qemu-user: writes what chosen instructions of a program access, and when marked places are reached.
 *
 * Options: places=FILE, program=PATH and its first address as linked, first=HEX, folder=PATH, limit=N words a process. Lines of the file of places are
 * "a ADDRESS SIZE" (an instruction whose accesses are wanted, and the bytes of one, which QEMU may make in pieces) or
 * "c ADDRESS SIZE" (where a call that copies or fills memory returns to: an access, made in pieces) or
 * "h 0 SIZE" (what the allocator accesses, an access without an instruction of the program) or
 * "m ADDRESS 0" (a marked place), addresses as linked, in hex; the number of a place is its order among its kind. Each thread writes FOLDER/PID.THREAD.words, words of 64 bits:
 *
 *   bit 63 clear: an access; bit 62 set for a store, 14 bits number of the instruction, 48 bits address
 *   bit 63 set:   a marked place; 15 bits its number, 48 bits instructions that the thread has executed so far;
 *                 with the number 0x7fff the preloaded library told something: six words follow, the last of which
 *                 numbers all that was told, over all threads
 *
 * FOLDER/PID.process tells where the program was loaded, whether the limit was reached, the rank, and the bytes of an
 * access by number of instruction. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qemu_plugin.h"

EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

enum { THREADS = 1024, WORDS = 1 << 15, NUMBERS = 1 << 14, RANGES = 128, TELLING = 0x6777, COPY = 8, HEAP = 9 };
static const uint64_t MARK = 1ull << 63, STORE = 1ull << 62, LOW = (1ull << 48) - 1;

struct place {
    uint64_t address, number;
    char kind;
};
struct range {
    uint64_t begin, end;
};
struct stream {
    uint64_t instructions, next, last; /* where the next piece of an access would be, and its word without address */
    size_t used;
    unsigned got;
    int file;
    uint64_t words[WORDS];
};

static struct stream *streams[THREADS];
static struct place *places;
static size_t n_places;
static unsigned char sizes[NUMBERS];
static struct range own[RANGES], counted[RANGES];
static int n_own, n_counted, full;
static uint64_t base, first, limit = 1ull << 26, written, heap = NUMBERS;
static char folder[PATH_MAX], program[PATH_MAX];
static pthread_once_t mapped = PTHREAD_ONCE_INIT;

static void flush_stream(struct stream *s) {
    if (__atomic_add_fetch(&written, s->used, __ATOMIC_RELAXED) > limit) full = 1;
    const char *from = (const char *)s->words;
    for (size_t left = s->used * 8; left;) {
        ssize_t done = write(s->file, from, left);
        if (done <= 0) {
            full = 1;
            break;
        }
        from += done, left -= (size_t)done;
    }
    s->used = 0;
}

static struct stream *stream_of(unsigned vcpu) {
    if (vcpu >= THREADS) _exit(125);
    if (!streams[vcpu]) {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof path, "%s/%d.%u.words", folder, getpid(), vcpu);
        struct stream *s = calloc(1, sizeof *s);
        s->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        streams[vcpu] = s;
    }
    return streams[vcpu];
}

static inline void put(struct stream *s, uint64_t word) {
    if (s->used == WORDS) flush_stream(s);
    s->words[s->used++] = word;
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *number) {
    if (full) return;
    struct stream *s = stream_of(vcpu);
    unsigned size = 1u << qemu_plugin_mem_size_shift(info), whole = sizes[(uintptr_t)number];
    uint64_t word = (qemu_plugin_mem_is_store(info) ? STORE : 0) | (uint64_t)(uintptr_t)number << 48;
    if (s->got && word == s->last && address == s->next && s->got + size <= whole) {
        s->got += size, s->next += size;
        return;
    }
    if (size > whole) sizes[(uintptr_t)number] = (unsigned char)size;
    s->last = word, s->next = address + size, s->got = size;
    put(s, word | (address & LOW));
}

static void on_place(unsigned vcpu, void *number) {
    struct stream *s = stream_of(vcpu);
    s->got = 0;
    if (!full) put(s, MARK | (uint64_t)(uintptr_t)number << 48 | (s->instructions & LOW));
}

static void on_block(unsigned vcpu, void *count) { stream_of(vcpu)->instructions += (uintptr_t)count; }

static size_t find_place(uint64_t address) {
    size_t low = 0, high = n_places;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (places[middle].address + base < address) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Write the accesses of a copy (of a fill, `from` is 0) in pieces, the last one at its end. Vectors of 32 bytes would do it
 * with two instructions each. */
static void write_copy(struct stream *s, uint64_t to, uint64_t from, uint64_t n, uint64_t caller) {
    size_t k = find_place(caller);
    while (k < n_places && places[k].address + base == caller && places[k].kind != 'c') k++;
    if (full || k == n_places || places[k].address + base != caller) return;
    uint64_t word = places[k].number << 48, size = sizes[places[k].number];
    s->got = 0;
    for (uint64_t at = 0; n >= size && at < n; at += size) {
        if (at + size > n) at = n - size;
        if (from) put(s, word | ((from + at) & LOW));
        put(s, STORE | word | ((to + at) & LOW));
    }
    s->instructions += 2 * n / 32;
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)g, (void)h;
    static uint64_t told;
    if (number != TELLING) return;
    struct stream *s = stream_of(vcpu);
    if (a == COPY) {
        write_copy(s, b, c, d, e);
        return;
    }
    if (a == HEAP) {
        s->got = 0;
        if (!full && heap < NUMBERS) put(s, (c ? STORE : 0) | heap << 48 | (b & LOW));
        return;
    }
    put(s, MARK | 0x7fffull << 48 | (s->instructions & LOW));
    put(s, a), put(s, b), put(s, c), put(s, d), put(s, f), put(s, __atomic_fetch_add(&told, 1, __ATOMIC_RELAXED));
}

static int is_counted(const char *path) {
    static const char *const names[] = {"libm", "libmvec", "libgfortran", "libquadmath", "libstdc++"};
    const char *name = strrchr(path, '/');
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (!strncmp(name + 1, names[i], n) && strchr(".-", name[n + 1])) return 1;
    }
    return 0;
}

static void read_mappings(struct range *found, int *count, int libraries) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    *count = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long begin, end, offset;
        int at = 0;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &begin, &end, &offset, &at) < 3 || !at) continue;
        if (libraries ? !is_counted(line + at) : strcmp(line + at, program)) continue;
        if (!libraries && !offset) base = begin - first;
        if (*count < RANGES) found[(*count)++] = (struct range){begin, end};
    }
    if (maps) fclose(maps);
}

static void find_program(void) { read_mappings(own, &n_own, 0); }

static int holds(const struct range *ranges, int count, uint64_t address) {
    for (int i = 0; i < count; i++)
        if (ranges[i].begin <= address && address < ranges[i].end) return 1;
    return 0;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    static uint64_t last_seen;
    pthread_once(&mapped, find_program);
    uint64_t begin = qemu_plugin_tb_vaddr(tb);
    size_t n = qemu_plugin_tb_n_insns(tb);
    int ours = holds(own, n_own, begin);
    if (!ours && !holds(counted, n_counted, begin)) {
        if (last_seen != begin >> 20) { /* another library may have been loaded meanwhile */
            last_seen = begin >> 20;
            read_mappings(counted, &n_counted, 1);
        }
        if (!holds(counted, n_counted, begin)) return;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)n);
    for (size_t i = 0; ours && i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        for (size_t low = find_place(address); low < n_places && places[low].address + base == address; low++)
            if (places[low].kind == 'c') continue;
            else if (places[low].kind == 'a')
                qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                                 (void *)(uintptr_t)places[low].number);
            else
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_place, QEMU_PLUGIN_CB_NO_REGS,
                                                       (void *)(uintptr_t)places[low].number);
    }
}

/* The rank as MPI launchers tell it, 0 without one. */
static int find_rank(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return 0;
}

static void on_exit_(qemu_plugin_id_t id, void *unused) {
    (void)id, (void)unused;
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%d.process", folder, getpid());
    FILE *out = fopen(path, "w");
    if (!out) return;
    fprintf(out, "%llx %d %d\n", (unsigned long long)base, full, find_rank());
    for (int i = 0; i < NUMBERS; i++)
        if (sizes[i]) fprintf(out, "%d %u\n", i, sizes[i]);
    fclose(out);
    for (int i = 0; i < THREADS; i++)
        if (streams[i]) flush_stream(streams[i]);
}

static int by_address(const void *a, const void *b) {
    const struct place *p = a, *q = b;
    if (p->address != q->address) return p->address < q->address ? -1 : 1;
    return p->number > q->number ? -1 : p->number < q->number; /* where a jump leads to comes before a header there */
}

static void read_places(const char *path) {
    FILE *in = fopen(path, "r");
    unsigned long long address;
    unsigned size;
    uint64_t accesses = 0, marks = 0;
    char kind;
    while (in && fscanf(in, " %c %llx %u", &kind, &address, &size) == 3) {
        if (kind != 'm' && accesses < NUMBERS) sizes[accesses] = (unsigned char)size;
        if (kind == 'h') {
            heap = accesses++;
            continue;
        }
        places = realloc(places, (n_places + 1) * sizeof *places);
        places[n_places++] = (struct place){address, kind != 'm' ? accesses++ : marks++, kind};
    }
    if (in) fclose(in);
    qsort(places, n_places, sizeof *places, by_address);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (!value++) continue;
        if (!strncmp(argv[i], "places=", 7)) read_places(value);
        if (!strncmp(argv[i], "program=", 8)) snprintf(program, sizeof program, "%s", value);
        if (!strncmp(argv[i], "folder=", 7)) snprintf(folder, sizeof folder, "%s", value);
        if (!strncmp(argv[i], "first=", 6)) first = strtoull(value, NULL, 16);
        if (!strncmp(argv[i], "limit=", 6)) limit = strtoull(value, NULL, 10);
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
