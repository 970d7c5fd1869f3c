/* Options, the mesh, and its sub-domains. */
#include "crash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1024, WIDEST = 64 };

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "crash: %s: %s\n", which, what);
    exit(2);
}

static void *need(size_t count, size_t size)
{
    void *found = NULL;
    if (posix_memalign(&found, 4096, count * size + 1))
        fail("no memory", "start");
    memset(found, 0, count * size);
    return found;
}

static FILE *opened(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail("can't be read", path);
    return file;
}

static int lines(const char *path)
{
    FILE *file = opened(path);
    int count = 0, c;
    while ((c = fgetc(file)) != EOF)
        count += c == '\n';
    fclose(file);
    return count;
}

struct mesh *read_mesh(const char *neighbours, const char *elements)
{
    struct mesh *mesh = need(1, sizeof *mesh);
    char line[LONGEST];
    mesh->elements = lines(neighbours);
    if (lines(elements) != mesh->elements)
        fail("has another number of elements than the mesh", elements);
    mesh->first = need(mesh->elements + 1, sizeof(int));
    mesh->near = need((size_t)mesh->elements * WIDEST, sizeof(int));
    mesh->plastic = need(mesh->elements, sizeof(int));
    mesh->row = need(mesh->elements, sizeof(int));
    FILE *file = opened(neighbours), *kinds = opened(elements);
    for (int i = 0, used = 0; i < mesh->elements && fgets(line, sizeof line, file); i++) {
        char *word = strtok(line, " \n");
        for (int many = 0; word && many < WIDEST; many++, word = strtok(NULL, " \n"))
            mesh->near[used++] = atoi(word);
        mesh->first[i + 1] = used;
        if (fscanf(kinds, "%d %d", &mesh->plastic[i], &mesh->row[i]) != 2)
            fail("breaks off", elements);
        if (mesh->row[i] >= mesh->rows)
            mesh->rows = mesh->row[i] + 1;
    }
    fclose(file);
    fclose(kinds);
    return mesh;
}

static struct parts *sorted(const int *owner, int elements, int count)
{
    struct parts *parts = need(1, sizeof *parts);
    parts->count = count;
    parts->first = need(count + 1, sizeof(int));
    parts->element = need(elements, sizeof(int));
    for (int d = 0, used = 0; d < count; d++) {
        for (int i = 0; i < elements; i++)
            if (owner[i] == d)
                parts->element[used++] = i;
        parts->first[d + 1] = used;
    }
    if (parts->first[count] != elements)
        fail("leaves elements without a sub-domain", "parts");
    return parts;
}

struct parts *blocks(int elements, int count)
{
    int *owner = need(elements, sizeof(int));
    for (int d = 0; d < count; d++)
        for (long i = (long)elements * d / count; i < (long)elements * (d + 1) / count; i++)
            owner[i] = d;
    struct parts *parts = sorted(owner, elements, count);
    free(owner);
    return parts;
}

struct parts *read_parts(const char *path, int elements, int count)
{
    FILE *file = opened(path);
    int *owner = need(elements, sizeof(int));
    for (int i = 0; i < elements; i++)
        if (fscanf(file, "%d", &owner[i]) != 1 || owner[i] < 0 || owner[i] >= count)
            fail("expected one number of a sub-domain for each element", path);
    fclose(file);
    struct parts *parts = sorted(owner, elements, count);
    free(owner);
    return parts;
}

struct run options(int argc, char **argv)
{
    static const char *known[] = {"SP", "SD", "SD2", "SD3", "SD4", "SD8"};
    if (argc != 8)
        fail("VERSION THREADS CYCLES GRAIN MESH ELEMENTS PARTS (PARTS: a file, or -)", "expected");
    struct run run = {.version = argv[1], .cycles = atoi(argv[3]), .grain = atof(argv[4])};
    int number = 0, threads = atoi(argv[2]);
    while (number < 6 && strcmp(known[number], run.version))
        number++;
    if (number == 6 || threads < 1 || run.cycles < 1)
        fail("unknown version, or no threads or cycles", argv[1]);
    run.mesh = read_mesh(argv[5], argv[6]);
    int blocked = number == 0 || !strcmp(argv[7], "-");
    run.parts = blocked ? blocks(run.mesh->elements, threads) : read_parts(argv[7], run.mesh->elements, threads);
    run.stride = number >= 2 ? 4 : 3;
    run.bound = number >= 3;
    run.twice = number == 3;
    run.copies = number == 5 ? 2 : 1;
    size_t size = (size_t)run.mesh->elements * run.stride;
    for (int copy = 0; copy < run.copies; copy++) {
        run.pos[copy] = need(size, sizeof(double));
        run.vel[copy] = need(size, sizeof(double));
    }
    run.force = need(size, sizeof(double));
    for (int i = 0; i < run.mesh->elements; i++)
        run.pos[0][i * run.stride] = i % 97;
    return run;
}

double checksum(const struct run *run)
{
    const double *pos = run->pos[run->copies > 1 ? run->cycles % 2 : 0];
    double sum = 0;
    for (int i = 0; i < run->mesh->elements; i++)
        for (int c = 0; c < 3; c++)
            sum += pos[i * run->stride + c] * (1 + c + i % 7);
    return sum;
}
