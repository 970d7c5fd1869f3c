#include "truth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double *collect(const double *mine, size_t length, const struct run *run)
{
    double *all = run->rank == 0 ? calloc(length * (size_t)run->ranks, sizeof *all) : NULL;
    if (run->rank == 0 && !all)
        MPI_Abort(MPI_COMM_WORLD, 3);
    PMPI_Gather(mine, (int)length, MPI_DOUBLE, all, (int)length, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return all;
}

void truth_gather(struct truth *truth, struct run *run)
{
    const struct record *record = &run->record;
    double mine[] = {record->loop_wall_s, record->main_wall_s}, longest[2] = {0, 0};
    truth->seconds = collect(record->seconds, record_length(record), run);
    truth->thread_seconds = collect(record->thread_seconds, record_thread_length(record), run);
    truth->counts = collect(record->counts, COUNTS, run);
    PMPI_Reduce(mine, longest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    truth->loop_wall_s = longest[0];
    truth->main_wall_s = longest[1];
}

static void write_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if ((unsigned char)*text < ' ')
            fprintf(file, "\\u%04x", *text);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void write_command(FILE *file, int count, char **words)
{
    fputs(" \"program\": \"stencil\",\n \"arguments\": [", file);
    for (int i = 1; i < count; i++) {
        fputs(i > 1 ? ", " : "", file);
        write_string(file, words[i]);
    }
    fputs("],\n", file);
}

static void write_options(FILE *file, const struct options *options)
{
    fputs(" \"options\": {", file);
    for (const struct option *option = option_table; option->name; option++) {
        fprintf(file, "%s\n  \"%s\": ", option == option_table ? "" : ",", option->name);
        if (option_word(options, option))
            write_string(file, option_word(options, option));
        else
            fprintf(file, "%.12g", option_number(options, option));
    }
    fputs("\n },\n", file);
}

static void write_counts(FILE *file, const double *counts, int ranks)
{
    fputs(" \"counts_per_rank\": [", file);
    for (int rank = 0; rank < ranks; rank++) {
        fprintf(file, "%s\n  {", rank ? "," : "");
        for (int i = 0; i < COUNTS; i++)
            fprintf(file, "%s\"%s\": %.0f", i ? ", " : "", count_names[i], counts[rank * COUNTS + i]);
        fputc('}', file);
    }
    fputs("\n ]", file);
}

static void write_row(FILE *file, const double *values, int length)
{
    fputc('[', file);
    for (int i = 0; i < length; i++)
        fprintf(file, "%s%.6g", i ? ", " : "", round(1e6 * values[i]) / 1e6);
    fputc(']', file);
}

/* An array of numbers with rows of rows: ranks, inside them threads if there are more than one. */
struct cube {
    const double *values;
    size_t rank_stride, region_stride;
    int ranks, threads, iters;
};

static const double *cell(const struct cube *cube, int rank, int region)
{
    return cube->values + (size_t)rank * cube->rank_stride + (size_t)region * cube->region_stride;
}

static int is_used(const struct cube *cube, int region)
{
    for (int rank = 0; rank < cube->ranks; rank++)
        for (int i = 0; i < cube->threads * cube->iters; i++)
            if (cell(cube, rank, region)[i] != 0)
                return 1;
    return 0;
}

static void write_region(FILE *file, const struct cube *cube, int region, int with_threads)
{
    for (int rank = 0; rank < cube->ranks; rank++) {
        fputs(rank ? ",\n   " : "[", file);
        fputs(with_threads ? "[" : "", file);
        for (int thread = 0; thread < cube->threads; thread++) {
            fputs(thread ? ", " : "", file);
            write_row(file, cell(cube, rank, region) + thread * cube->iters, cube->iters);
        }
        fputs(with_threads ? "]" : "", file);
    }
    fputc(']', file);
}

static void write_cube(FILE *file, const char *name, const struct cube *cube, int with_threads)
{
    const char *separator = "";
    fprintf(file, ",\n \"%s\": {", name);
    for (int region = 0; region < REGIONS; region++) {
        if (!is_used(cube, region))
            continue;
        fprintf(file, "%s\n  \"%s\": ", separator, region_names[region]);
        write_region(file, cube, region, with_threads);
        separator = ",";
    }
    fputs("}", file);
}

static void write_seconds(FILE *file, const struct truth *truth, const struct run *run)
{
    const struct record *record = &run->record;
    struct cube cube = {NULL, record_length(record), (size_t)record->iters, run->ranks, 1, record->iters};
    for (int what = 0; what < SECONDS; what++) {
        cube.values = truth->seconds + (size_t)what * REGIONS * cube.region_stride;
        write_cube(file, seconds_names[what], &cube, 0);
    }
    if (record->threads == 1)
        return;
    cube.threads = record->threads;
    cube.rank_stride = record_thread_length(record);
    cube.region_stride *= (size_t)record->threads;
    for (int what = 0; what < THREAD_SECONDS; what++) {
        cube.values = truth->thread_seconds + (size_t)what * REGIONS * cube.region_stride;
        write_cube(file, thread_seconds_names[what], &cube, 1);
    }
}

static void write_truth(FILE *file, const struct truth *truth, const struct run *run, int count, char **words)
{
    fputs("{\n", file);
    write_command(file, count, words);
    fprintf(file, " \"ranks\": %d,\n \"threads\": %d,\n", run->ranks, run->options.threads);
    fprintf(file, " \"iterations\": %d,\n", run->options.iters);
    fprintf(file, " \"loop_wall_s\": %.6f,\n \"main_wall_s\": %.6f,\n", truth->loop_wall_s, truth->main_wall_s);
    write_options(file, &run->options);
    write_counts(file, truth->counts, run->ranks);
    write_seconds(file, truth, run);
    fputs("\n}\n", file);
}

int truth_write(struct truth *truth, const struct run *run, int count, char **words)
{
    FILE *file = fopen(run->options.truth, "w");
    if (file)
        write_truth(file, truth, run, count, words);
    if (!file || ferror(file) || fclose(file) != 0) {
        perror(run->options.truth);
        return 1;
    }
    free(truth->seconds);
    free(truth->thread_seconds);
    free(truth->counts);
    return 0;
}
