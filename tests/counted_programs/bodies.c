/* All pairs of bodies, once each and twice each: ./bodies N STEPS */
#include <stdlib.h>
#include <string.h>
static int steps;
static int bodies = 100;
static double *x, *f;

static void read_command(int argc, char **argv)
{
    if (argc > 1)
        bodies = atoi(argv[1]);
    steps = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
}

static void forces(void)
{
    for (int i = 0; i < bodies; i++)
        for (int j = i + 1; j < bodies; j++) {
            double d = x[i] - x[j];
            f[i] += d;
            f[j] -= d;
        }
    for (int i = 0; i < bodies; i++)
        for (int j = 0; j < bodies; j++) {
            if (i == j)
                continue;
            f[i] += 1.0 / (x[i] - x[j]);
        }
}

int main(int argc, char **argv)
{
    read_command(argc, argv);
    x = malloc(sizeof(double) * bodies);
    f = malloc(sizeof(double) * bodies);
    for (int i = 0; i < bodies; i++)
        x[i] = i;
    memset(f, 0, bodies * sizeof *f);
    for (int t = 0; t < steps; t++) {
        forces();
        for (int i = 0; i < bodies; i++)
            x[i] += 1e-9 * f[i];
        if (t % 4 == 3)
            for (int i = bodies - 1; i >= 0; i -= 3)
                f[i] = 0.0;
    }
    return 0;
}
