/* Bodies in a plane attract each other. The force goes through an angle and a power; repaired, the same by a division
   and a square root. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void forces(int n, const double *x, const double *y, double *ax, double *ay)
{
    for (int i = 0; i < n; i++) {
        double sx = 0.0, sy = 0.0;
        for (int j = 0; j < n; j++) {
            double dx = x[j] - x[i], dy = y[j] - y[i];
#ifdef REPAIRED
            double r2 = dx * dx + dy * dy + 1e-4, f = 1.0 / (r2 * sqrt(r2));
            sx += f * dx;
            sy += f * dy;
#else
            double r = sqrt(pow(dx, 2.0) + pow(dy, 2.0) + 1e-4), angle = atan2(dy, dx);
            double f = hypot(dx, dy) / pow(r, 3.0);
            sx += f * cos(angle);
            sy += f * sin(angle);
#endif
        }
        ax[i] = sx;
        ay[i] = sy;
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1000, steps = argc > 2 ? atoi(argv[2]) : 12;
    double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    double *u = calloc(n, sizeof *u), *v = calloc(n, sizeof *v), *ax = malloc(n * sizeof *ax), *ay = malloc(n * sizeof *ay);
    for (int i = 0; i < n; i++) {
        x[i] = (i * 37 % 101) / 101.0;
        y[i] = (i * 53 % 103) / 103.0;
    }
    for (int step = 0; step < steps; step++) {
        forces(n, x, y, ax, ay);
        for (int i = 0; i < n; i++) {
            u[i] += 1e-6 * ax[i];
            v[i] += 1e-6 * ay[i];
            x[i] += 1e-3 * u[i];
            y[i] += 1e-3 * v[i];
        }
    }
    printf("%.8g %.8g\n", x[n / 2], y[n / 3]);
    return 0;
}
