/* What the program can be asked to do: sizes, the kind of work, and one field per fault. */
#ifndef OPTIONS_H
#define OPTIONS_H

enum work { WORK_CPU, WORK_SLEEP, WORK_FLOPS };
enum exchange { EXCHANGE_ISEND, EXCHANGE_SENDRECV, EXCHANGE_SEND };

struct options {
    int iters, threads, halo_bytes, write_bytes, heavy;
    int work, exchange;
    double base_s, rate;
    const char *truth, *out;

    double imbalance, multiphase, dynamic, omp_imbalance, omp_serial;
    double serial_s, late_s, straggler_s, pipeline_s, oswait_s;
    int messages, reductions, barriers, fork_joins;
    int writes_all, writes_one, fsyncs;
    int thrash, rowwise, false_sharing, padded;
    double message_cost_s, reduction_cost_s, barrier_cost_s, write_cost_s, fsync_cost_s;
};

/* How an option is given; times are typed in milli- or microseconds and kept in seconds. */
enum kind { KIND_INT, KIND_REAL, KIND_MS, KIND_US, KIND_WORK, KIND_EXCHANGE, KIND_TEXT };

struct option {
    const char *name, *value;
    enum kind kind;
    unsigned long offset;
    const char *initial;
    double low, high;
    const char *help;
};

/* The table of all options; the last entry has no name. */
extern const struct option option_table[];

/* The value of an option, in the unit in which it is typed; for a text its number in the list of choices. */
double option_number(const struct options *options, const struct option *option);

/* The value of an option that is a word, NULL for a number. */
const char *option_word(const struct options *options, const struct option *option);

/* Fills options from the command line; returns 0, or 1 after --help, or 2 with a message on stderr. */
int options_parse(struct options *options, int count, char **words, int quiet);

#endif
