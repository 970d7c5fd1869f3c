#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct options, field)
#define NONE 0, 0

const struct option option_table[] = {
    {"iters", "N", KIND_INT, AT(iters), "20", 1, 1e6, "iterations"},
    {"base", "MS", KIND_MS, AT(base_s), "10", 0, 1e6, "work of each rank (and thread) in each of the two phases of an iteration"},
    {"work", "cpu|sleep|flops", KIND_WORK, AT(work), "cpu", NONE, "what work is: CPU time spent, a timed sleep (needs no cores), or a number of operations"},
    {"rate", "R", KIND_REAL, AT(rate), "2e8", 1, 1e15, "multiply-adds that --work flops does for a second of work"},
    {"threads", "N", KIND_INT, AT(threads), "1", 1, 256, "OpenMP threads of each rank"},
    {"halo", "BYTES", KIND_INT, AT(halo_bytes), "8192", 1, 1e9, "halo sent to each neighbour in an iteration"},
    {"exchange", "isend|sendrecv|send", KIND_EXCHANGE, AT(exchange), "isend", NONE, "calls of the halo exchange: Isend, Irecv and Waitall; Sendrecv; Send and Recv"},
    {"heavy", "RANK", KIND_INT, AT(heavy), "0", 0, 1e6, "the rank that the imbalances load most"},
    {"truth", "FILE", KIND_TEXT, AT(truth), "truth.json", NONE, "where the ground truth is written"},
    {"out", "DIR", KIND_TEXT, AT(out), ".", NONE, "where the I/O faults write"},

    {"imbalance", "F", KIND_REAL, AT(imbalance), "0", 0, 1, "overall imbalance: both phases take 1+F on the heavy rank, down to 1-F on the last; costs 2 F base"},
    {"multiphase", "F", KIND_REAL, AT(multiphase), "0", 0, 1, "the same, but the second phase the other way round: totals are balanced; costs 2 F base"},
    {"dynamic", "F", KIND_REAL, AT(dynamic), "0", 0, 1, "the same, but the load moves on by one rank each iteration: totals are balanced; costs 2 F base"},
    {"omp-imbalance", "F", KIND_REAL, AT(omp_imbalance), "0", 0, 1, "threads of a rank take from 1+F to 1-F; costs 2 F base"},
    {"omp-serial", "F", KIND_REAL, AT(omp_serial), "0", 0, 1, "the share F of both phases is done by the first thread alone, after the others; costs 2 F base (threads - 1)"},
    {"serial", "MS", KIND_MS, AT(serial_s), "0", 0, 1e6, "rank 0 works alone, the others wait for it at a barrier; costs MS"},
    {"late", "MS", KIND_MS, AT(late_s), "0", 0, 1e6, "late sender, equal work: even ranks work MS before they send the halo, odd ones after they have it; costs MS"},
    {"straggler", "MS", KIND_MS, AT(straggler_s), "0", 0, 1e6, "late sender, unequal work: rank 0 works MS more before it sends its halo; costs MS"},
    {"pipeline", "MS", KIND_MS, AT(pipeline_s), "0", 0, 1e6, "a sweep through the ranks: each works MS once its left neighbour has; costs MS (ranks - 1)"},
    {"oswait", "MS", KIND_MS, AT(oswait_s), "0", 0, 1e6, "every rank is put to sleep by the operating system inside the first phase; costs MS"},
    {"messages", "N", KIND_INT, AT(messages), "1", 1, 1e6, "the halo goes in N small messages; costs (N-1) message costs per neighbour"},
    {"reductions", "N", KIND_INT, AT(reductions), "1", 1, 1e6, "N reductions of one number each end an iteration; costs (N-1) reduction costs"},
    {"barriers", "N", KIND_INT, AT(barriers), "0", 0, 1e6, "N more barriers after the second phase that guard nothing; costs N barrier costs"},
    {"fork-joins", "N", KIND_INT, AT(fork_joins), "1", 1, 1e6, "the work of a phase is cut into N parallel regions; costs 2 (N-1) forks and joins"},
    {"io-all", "N", KIND_INT, AT(writes_all), "0", 0, 1e6, "every rank writes N times an iteration; costs N write costs"},
    {"io-one", "N", KIND_INT, AT(writes_one), "0", 0, 1e6, "rank 0 writes N times an iteration, the others wait; costs N write costs"},
    {"write-bytes", "BYTES", KIND_INT, AT(write_bytes), "512", 1, 1e9, "bytes of one write"},
    {"fsyncs", "N", KIND_INT, AT(fsyncs), "0", 0, 1e6, "whoever writes also waits for the disk N times an iteration; costs N fsync costs"},
    {"thrash", "N", KIND_INT, AT(thrash), "0", 0, 32768, "every rank adds up N x N numbers column by column: N*N strided loads, most of them cache misses"},
    {"rowwise", "N", KIND_INT, AT(rowwise), "0", 0, 32768, "the same sum row by row, as it should be; the difference to --thrash is what the fault costs"},
    {"false-sharing", "N", KIND_INT, AT(false_sharing), "0", 0, 2e9, "every thread adds N times to its own counter; all counters in one cache line"},
    {"padded", "N", KIND_INT, AT(padded), "0", 0, 2e9, "the same with a cache line for each counter; the difference is what the fault costs"},

    {"message-cost", "US", KIND_US, AT(message_cost_s), "0", 0, 1e7, "each message sent takes this much longer than here"},
    {"reduction-cost", "US", KIND_US, AT(reduction_cost_s), "0", 0, 1e7, "each reduction"},
    {"barrier-cost", "US", KIND_US, AT(barrier_cost_s), "0", 0, 1e7, "each barrier"},
    {"write-cost", "US", KIND_US, AT(write_cost_s), "0", 0, 1e7, "each write"},
    {"fsync-cost", "US", KIND_US, AT(fsync_cost_s), "0", 0, 1e7, "each fsync"},
    {NULL, NULL, KIND_INT, 0, NULL, NONE, NULL},
};

static const char *const work_names[] = {"cpu", "sleep", "flops", NULL};
static const char *const exchange_names[] = {"isend", "sendrecv", "send", NULL};

static const char *const *choices(const struct option *option)
{
    return option->kind == KIND_WORK ? work_names : exchange_names;
}

static double unit(const struct option *option)
{
    return option->kind == KIND_MS ? 1e-3 : option->kind == KIND_US ? 1e-6 : 1.0;
}

double option_number(const struct options *options, const struct option *option)
{
    const char *field = (const char *)options + option->offset;
    if (option->kind == KIND_REAL || option->kind == KIND_MS || option->kind == KIND_US)
        return *(const double *)field / unit(option);
    return option->kind == KIND_TEXT ? 0 : *(const int *)field;
}

const char *option_word(const struct options *options, const struct option *option)
{
    if (option->kind == KIND_TEXT)
        return *(const char *const *)((const char *)options + option->offset);
    if (option->kind == KIND_WORK || option->kind == KIND_EXCHANGE)
        return choices(option)[(int)option_number(options, option)];
    return NULL;
}

static int set_choice(int *field, const struct option *option, const char *text)
{
    for (int number = 0; choices(option)[number]; number++)
        if (strcmp(choices(option)[number], text) == 0) {
            *field = number;
            return 0;
        }
    return 2;
}

static int set_number(void *field, const struct option *option, const char *text)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    int wrong = errno || end == text || *end || !(number >= option->low && number <= option->high);
    if (wrong || (option->kind == KIND_INT && (number > INT_MAX || number != (int)number)))
        return 2;
    if (option->kind == KIND_INT)
        *(int *)field = (int)number;
    else
        *(double *)field = number * unit(option);
    return 0;
}

static int set(struct options *options, const struct option *option, const char *text)
{
    void *field = (char *)options + option->offset;
    if (option->kind == KIND_TEXT) {
        *(const char **)field = text;
        return 0;
    }
    if (option->kind == KIND_WORK || option->kind == KIND_EXCHANGE)
        return set_choice(field, option, text);
    return set_number(field, option, text);
}

static void print_help(void)
{
    puts("stencil: a small MPI + OpenMP program whose faults are switched on one by one.\n");
    puts("An iteration: [serial part, barrier,] compute_fluxes, barrier, update_cells, barrier,");
    puts("exchange_halo [, sweep_line, write_output], sum_residual (an allreduce).");
    puts("Costs are per iteration, in run time. What it injected and what it measured goes to --truth.\n");
    for (const struct option *option = option_table; option->name; option++)
        printf("  --%s %s\n        %s (default %s)\n", option->name, option->value, option->help, option->initial);
}

static const struct option *find(const char *word)
{
    const struct option *option = option_table;
    while (option->name && (strncmp(word, "--", 2) != 0 || strcmp(word + 2, option->name) != 0))
        option++;
    return option->name ? option : NULL;
}

int options_parse(struct options *options, int count, char **words, int quiet)
{
    for (const struct option *option = option_table; option->name; option++)
        set(options, option, option->initial);
    for (int i = 1; i < count; i += 2) {
        const struct option *option = find(words[i]);
        if (strcmp(words[i], "--help") == 0) {
            if (!quiet)
                print_help();
            return 1;
        }
        if (!option || i + 1 == count || set(options, option, words[i + 1]) != 0) {
            const char *problem = !option ? "unknown option" : i + 1 == count ? "value missing after" : "bad value for";
            if (!quiet)
                fprintf(stderr, "stencil: %s %s (see --help)\n", problem, words[i]);
            return 2;
        }
    }
    return 0;
}
