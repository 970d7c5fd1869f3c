/* Arguments with names, a loop that the body moves, cases that fall through: ./options -n N -s STEPS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int n = 8, steps = 2;
static double *x, *y;

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0)
            n = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-s"))
            steps = atoi(argv[++i]);
        else
            exit(1);
    }
}

int main(int argc, char **argv)
{
    double total = 0.0;
    parse(argc, argv);
    x = calloc(n, sizeof(double)), y = calloc(n, sizeof(double));
    for (int s = 0; s < steps; s++) {
        for (int i = s % 2, last = n - 1; i < last; i += 2, total += 1.0)
            x[i] = x[i + 1] = 0.5 * (x[i] + x[i + 1]);
        switch (s % 4) {
        case 0:
        case 1:
            for (int k = 0; k < n; k += 3)
                y[k] *= 2.0;
            break;
        case 2:
            for (int k = 0; k < n; k++)
                total += x[k] * y[k];
            /* fall through */
        default:
            total -= 1.0;
        }
    }
    printf("%g\n", total);
    return 0;
}
