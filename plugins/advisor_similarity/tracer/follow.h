/* A process that becomes another program goes on under the tracer, where that program is of the same architecture.
 * Addresses of the program are those of this process, as qemu-user maps 64-bit programs one to one. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <elf.h>
#include <sys/uio.h>

enum { MAX_ARGUMENTS = 4096, MAX_LINE = 256, OWN_ARGUMENTS = 8 };

static int peek(uint64_t address, void *to, size_t n) {
    struct iovec here = {to, n}, there = {(void *)(uintptr_t)address, n};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)n;
}

static int machine_of(const char *path) {
    Elf64_Ehdr head;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, &head, sizeof head);
    if (file >= 0) close(file);
    if (n != sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64) return -1;
    return head.e_machine;
}

/* Splits `#!interpreter argument` of a script; returns the number of words. */
static int script_words(const char *path, char *line, char **words) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : read(file, line, MAX_LINE - 1);
    if (file >= 0) close(file);
    if (n < 3 || line[0] != '#' || line[1] != '!') return 0;
    line[n] = 0;
    line[strcspn(line, "\n")] = 0;
    words[0] = line + 2 + strspn(line + 2, " \t");
    char *rest = words[0] + strcspn(words[0], " \t");
    if (!*rest) return *words[0] != 0;
    *rest++ = 0;
    words[1] = rest + strspn(rest, " \t");
    return *words[1] ? 2 : 1;
}

static void follow(uint64_t path_at, uint64_t arguments_at, uint64_t environment) {
    char *path = (char *)(uintptr_t)path_at, probe, line[MAX_LINE], *words[2] = {NULL, NULL}, plugin[5 * PATH_MAX];
    if (!peek(path_at, &probe, 1) || access(path, X_OK)) return;
    int script = script_words(path, line, words);
    const char *program = script ? words[0] : path;
    if (machine_of(program) != (execve_number == 59 ? EM_X86_64 : EM_AARCH64)) return;
    char *arguments[MAX_ARGUMENTS] = {qemu, "-cpu", "max", "-plugin", plugin}, *argument;
    int n = 5, given = 0;
    Dl_info self;
    if (!dladdr((void *)follow, &self)) return;
    snprintf(plugin, sizeof plugin, "%s%s", self.dli_fname, options);
    uint64_t at = arguments_at;
    for (; peek(at, &argument, sizeof argument) && argument && n < MAX_ARGUMENTS - OWN_ARGUMENTS; at += sizeof argument) {
        if (given++) arguments[n++] = argument;
        else if (script) {
            arguments[n++] = words[0];
            if (script == 2) arguments[n++] = words[1];
            arguments[n++] = path;
        } else {
            arguments[n++] = "-0";
            arguments[n++] = argument;
            arguments[n++] = path;
        }
    }
    if (!given) return;
    arguments[n] = NULL;
    write_results(streams, blocks, folder, results, "exec");
    execve(qemu, arguments, (char **)(uintptr_t)environment);
    drop_results(folder, results); /* it goes on as what it was */
}

#endif
