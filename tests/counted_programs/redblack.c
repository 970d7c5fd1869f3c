/* Points of one colour, then of the other; boundaries are left out by a condition: ./redblack N SWEEPS */
#include "redblack.h"

int main(int argc, char **argv)
{
    struct grid g;
    make_grid(&g, atoi(argv[1]));
    int sweeps = atoi(argv[2]);
    for (int sweep = 0; sweep < sweeps; sweep++)
        for (int color = 0; color < COLORS; color++)
            relax(&g, color);
    double sum = 0.0;
    for (int k = 0; k < g.n * g.n; k++) {
        if (k % 3 == 1 || k < 5)
            continue;
        sum += g.u[k];
    }
    return sum < 0.0;
}
