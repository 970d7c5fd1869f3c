/* A V-cycle over grids of half the size each, in one dimension: ./levels LOG2N CYCLES */
#include <stdlib.h>
#define LEVELS 20
static double *u[LEVELS];

static void smooth(double *v, int n, int times)
{
    for (int s = 0; s < times; s++)
        for (int i = 1; i < n; i++)
            v[i] = 0.5 * (v[i - 1] + v[i + 1]);
}

int main(int argc, char **argv)
{
    int levels = atoi(argv[1]), cycles = atoi(argv[2]);
    int finest = 1 << 10;
    for (int l = 0; l < LEVELS; l++)
        u[l] = calloc((1 << 10) + 2, sizeof(double));
    for (int cycle = 0; cycle < cycles; cycle++) {
        for (int l = 0; l < levels; l++)
            smooth(u[l], finest / (l + 1), 2);
        for (int l = levels - 1; l >= 0; l--)
            smooth(u[l], finest / (l + 1) - l, l + 1);
    }
    return 0;
}
