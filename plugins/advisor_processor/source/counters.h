/* Counters that gapwatch count put into this copy: they are written when the program ends. */
#ifndef GAPWATCH_FILE_@FILE@
#define GAPWATCH_FILE_@FILE@
#ifdef __cplusplus
#include <cstdio>
#include <cstdlib>
#else
#include <stdio.h>
#include <stdlib.h>
#endif
#include <unistd.h>
static unsigned long long gapwatch_counts_@FILE@[@COUNTERS@];
static struct { unsigned long long set; long long least, most; } gapwatch_values_@FILE@[@VALUES@];
#ifdef _OPENMP
#define GAPWATCH_COUNT_@FILE@(n) ((void)__atomic_fetch_add(&gapwatch_counts_@FILE@[n], 1ull, __ATOMIC_RELAXED))
#else
#define GAPWATCH_COUNT_@FILE@(n) ((void)++gapwatch_counts_@FILE@[n])
#endif
#define GAPWATCH_VALUE_@FILE@(n, x) gapwatch_value_@FILE@(n, (long long)(x))
__attribute__((unused)) static void gapwatch_value_@FILE@(int n, long long x)
{
    if (gapwatch_values_@FILE@[n].set == 0 || x < gapwatch_values_@FILE@[n].least)
        gapwatch_values_@FILE@[n].least = x;
    if (gapwatch_values_@FILE@[n].set == 0 || x > gapwatch_values_@FILE@[n].most)
        gapwatch_values_@FILE@[n].most = x;
    gapwatch_values_@FILE@[n].set = 1;
}
__attribute__((destructor)) static void gapwatch_write_@FILE@(void)
{
    const char *folder = getenv("GAPWATCH_COUNTS"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    char name[4096];
    FILE *file;
    if (folder == NULL)
        return;
    if (rank == NULL)
        rank = getenv("PMI_RANK");
    if (rank == NULL)
        rank = getenv("SLURM_PROCID");
    if (snprintf(name, sizeof name, "%s/@FILE@.%s.%ld.%p", folder, rank ? rank : "0", (long)getpid(),
                 (void *)gapwatch_counts_@FILE@) >= (int)sizeof name)
        return;
    file = fopen(name, "w");
    if (file == NULL)
        return;
    for (int n = 0; n < @COUNTERS@; n++)
        fprintf(file, "%llu\n", gapwatch_counts_@FILE@[n]);
    for (int n = 0; n < @VALUES@; n++)
        fprintf(file, "%llu %lld %lld\n", gapwatch_values_@FILE@[n].set, gapwatch_values_@FILE@[n].least, gapwatch_values_@FILE@[n].most);
    fprintf(file, "end\n");
    fclose(file);
}
#endif
