/* What CRASH works on. */
#ifndef CRASH_H
#define CRASH_H

struct mesh {
    int elements, rows;
    int *first, *near; /* neighbours of element i: near[first[i]] to near[first[i + 1] - 1] */
    int *plastic, *row;
};

/* The elements of each sub-domain, in rising order. */
struct parts {
    int count;
    int *first, *element;
};

struct run {
    const char *version;
    struct mesh *mesh;
    struct parts *parts;
    int cycles, stride, copies, bound, twice; /* twice: a second barrier after each, as compilers leave them */
    double grain;
    double *pos[2], *vel[2], *force;
};

struct run options(int argc, char **argv);
struct mesh *read_mesh(const char *neighbours, const char *elements);
struct parts *blocks(int elements, int count);
struct parts *read_parts(const char *path, int elements, int count);
double checksum(const struct run *run);

#endif
