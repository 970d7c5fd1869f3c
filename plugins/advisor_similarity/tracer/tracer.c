/* Runs inside qemu-user: schedules every executed instruction on the oracle machine.
 *
 * Options: socket=PATH of the decoder, folder=PATH for the results, and limit=N operations a cycle, rows=N cycles
 * to keep apart, window=N and period=N instructions to sample, region=N (see streams.h) and objects=1 to leave out what
 * is of no interest, qemu=PATH to follow a program that a process becomes,
 * parent=N the process that wants the results. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include "objects.h"
#include "qemu_api.h"
#include "results.h"

EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

static struct book book = {.connection = -1};
static struct plan plan;
static struct stream *streams[MAX_STREAMS];
static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX], qemu[PATH_MAX], options[4 * PATH_MAX];
static int results, execve_number, is_arm;

#include "follow.h"

/* QEMU leaves out the field of an instruction that lies across the end of a page: all of it is read from memory. */
static void whole_code(struct code *c, uint64_t address) {
    uint64_t room = CODE_BYTES;
    if ((address + c->length - 1) % 4096 < 4096 - 8) return;
    while (room > c->length && !peek(address, c->bytes, room)) room--;
    c->length = (uint8_t)room;
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *insn) {
    static uint8_t kinds[1 << 20]; /* size and direction of each kind of access, found out once */
    struct stream *s = streams[vcpu];
    if (!s->pending) return;
    uint8_t *kind = &kinds[info & ((1 << 20) - 1)];
    if (!*kind) *kind = (uint8_t)(0x80 | qemu_plugin_mem_size_shift(info) << 1 | qemu_plugin_mem_is_store(info));
    if (s->n_accesses == MAX_ACCESSES) {
        s->lost++;
        return;
    }
    s->accesses[s->n_accesses++] =
        (struct access){address, (uint16_t)(uintptr_t)insn, *kind & 1, 1u << (*kind >> 1 & 7)};
}

/* Asks what the file of a block is to the region of interest. */
static void place_block(struct block *b, uint64_t end, const struct code *last) {
    struct mapping here = mapping_of(&book, b->address);
    b->end = end;
    b->skipped = here.object ? (uint8_t)here.object->skipped : 0;
    b->entry = (uint8_t)is_entry(&here, b->address);
    b->calls = (uint8_t)is_call(last, is_arm);
}

static void on_block(unsigned vcpu, void *block) { stream_enter(streams[vcpu], block, &plan); }

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct code *codes = calloc(n, sizeof *codes);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        size_t length = qemu_plugin_insn_size(insn);
        codes[i].length = (uint8_t)(length < CODE_BYTES ? length : CODE_BYTES);
#if QEMU_PLUGIN_API >= 3
        qemu_plugin_insn_data(insn, codes[i].bytes, codes[i].length);
#else
        memcpy(codes[i].bytes, qemu_plugin_insn_data(insn), codes[i].length);
#endif
        whole_code(&codes[i], qemu_plugin_insn_vaddr(insn));
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, (void *)i);
    }
    pthread_mutex_lock(&lock);
    struct block *b = block_new(&book, qemu_plugin_tb_vaddr(tb), codes, (uint32_t)n);
    b->before = blocks;
    blocks = b;
    if (n && (plan.region || plan.by_object)) {
        struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, n - 1);
        place_block(b, qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last), &codes[n - 1]);
    }
    pthread_mutex_unlock(&lock);
    free(codes);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, b);
}

static void on_thread(qemu_plugin_id_t id, unsigned vcpu) {
    (void)id;
    if (vcpu >= MAX_STREAMS) {
        fprintf(stderr, "gapwatch: more than %d threads at a time\n", MAX_STREAMS);
        _exit(125);
    }
    pthread_mutex_lock(&lock);
    struct stream *s = stream_new(&plan);
    if (streams[vcpu]) stream_finish(streams[vcpu]);
    s->before = streams[vcpu];
    streams[vcpu] = s;
    pthread_mutex_unlock(&lock);
}

/* A child begins anew: its own connection, nothing executed yet. */
static void in_child(void) {
    if (book.connection >= 0) close(book.connection);
    book.connection = -1;
    results = 0;
    pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < MAX_STREAMS; i++)
        for (struct stream *s = streams[i], *before; s; s = before) {
            before = s->before;
            stream_free(s);
            streams[i] = before ? NULL : stream_new(&plan);
        }
}

static void on_exit_(qemu_plugin_id_t id, void *unused) {
    (void)id;
    (void)unused;
    write_results(streams, blocks, folder, results++, "exit");
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)vcpu, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == execve_number && *qemu) follow(a, b, c);
}

/* Ends with the process that started the tracer, where this is its child. */
static void end_with_parent(const char *value) {
    if (getppid() == (pid_t)strtol(value, NULL, 10)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void take_option(const char *option) {
    const char *value = strchr(option, '=');
    if (!value) return;
    size_t n = (size_t)(value++ - option);
    if (!strncmp(option, "socket", n)) snprintf(book.path, sizeof book.path, "%s", value);
    if (!strncmp(option, "folder", n)) snprintf(folder, sizeof folder, "%s", value);
    if (!strncmp(option, "qemu", n)) snprintf(qemu, sizeof qemu, "%s", value);
    if (!strncmp(option, "parent", n)) end_with_parent(value);
    if (!strncmp(option, "limit", n)) plan.limit = (uint32_t)strtoul(value, NULL, 10);
    if (!strncmp(option, "rows", n)) plan.rows = strtoull(value, NULL, 10);
    if (!strncmp(option, "window", n)) plan.window = strtoull(value, NULL, 10);
    if (!strncmp(option, "region", n)) plan.region = (int)strtol(value, NULL, 10);
    if (!strncmp(option, "objects", n)) plan.by_object = (int)strtol(value, NULL, 10);
    if (!strncmp(option, "period", n)) plan.period = strtoull(value, NULL, 10);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    is_arm = strcmp(info->target_name, "x86_64") != 0;
    execve_number = is_arm ? 221 : 59;
    for (int i = 0; i < argc; i++) {
        take_option(argv[i]);
        snprintf(options + strlen(options), sizeof options - strlen(options), ",%s", argv[i]);
    }
    pthread_atfork(NULL, NULL, in_child);
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_atexit_cb(id, on_exit_, NULL);
    return 0;
}
