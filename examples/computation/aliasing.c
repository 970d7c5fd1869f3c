/* A limiter on many arrays. Any of the results might overlap any of the inputs, so nothing is vectorized; repaired,
   restrict says that none does. */
#include <stdio.h>
#include <stdlib.h>

#ifdef REPAIRED
#define ALONE restrict
#else
#define ALONE
#endif

enum { INPUTS = 7, RESULTS = 3 };

void advance(int n, double dt, const double *ALONE a, const double *ALONE b, const double *ALONE c,
             const double *ALONE d, const double *ALONE e, const double *ALONE f, const double *ALONE g,
             double *ALONE x, double *ALONE y, double *ALONE z)
{
    for (int i = 0; i < n; i++) {
        double flux = a[i] * b[i] - c[i] * d[i], source = e[i] * f[i] + g[i];
        x[i] += dt * flux;
        y[i] += dt * (source - flux);
        z[i] = 0.5 * (z[i] + flux * source);
    }
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 300, steps = argc > 2 ? atoi(argv[2]) : 2000000;
    double *in[INPUTS], *out[RESULTS];
    for (int k = 0; k < INPUTS + RESULTS; k++) {
        double *made = malloc(n * sizeof *made);
        for (int i = 0; i < n; i++)
            made[i] = 1.0 + 1e-3 * ((i + 7 * k) % 13);
        if (k < INPUTS)
            in[k] = made;
        else
            out[k - INPUTS] = made;
    }
    for (int step = 0; step < steps; step++)
        advance(n, 1e-9, in[0], in[1], in[2], in[3], in[4], in[5], in[6], out[0], out[1], out[2]);
    printf("%.10g %.10g %.10g\n", out[0][n / 2], out[1][n / 2], out[2][n / 2]);
    return 0;
}
