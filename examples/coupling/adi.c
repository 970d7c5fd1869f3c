/* An alternating-direction implicit solver on a cube: the loop of kernels of a program such as NPB BT, in small.
 *
 *     adi N [PASSES]        N points in each direction
 *
 * copy_faces computes the right-hand side, x_solve, y_solve and z_solve solve tridiagonal systems along one direction
 * each, with coefficients of their own, and add updates the solution. Diffusion with reflecting walls keeps every
 * value within bounds, also where one kernel is run alone a million times.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gapwatch_coupling.h"

static int n;
static double *u, *forcing, *rhs, *x_low, *x_diag, *y_low, *y_diag, *z_low, *z_diag;

#define AT(i, j, k) (((size_t)(k) * n + (j)) * n + (i))

/* Right-hand side from the solution and its neighbours; walls see their own value. */
static void copy_faces(void)
{
#pragma omp parallel for
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++) {
            int below = k ? k - 1 : k, above = k < n - 1 ? k + 1 : k;
            int south = j ? j - 1 : j, north = j < n - 1 ? j + 1 : j;
            const double *f = &forcing[AT(0, j, k)], *c = &u[AT(0, j, k)];
            const double *b = &u[AT(0, j, below)], *a = &u[AT(0, j, above)];
            const double *s = &u[AT(0, south, k)], *t = &u[AT(0, north, k)];
            double *r = &rhs[AT(0, j, k)];
            r[0] = f[0] - 0.05 * (4 * c[0] - b[0] - a[0] - s[0] - t[0]);
            for (int i = 1; i < n - 1; i++)
                r[i] = f[i] - 0.05 * (6 * c[i] - c[i - 1] - c[i + 1] - b[i] - a[i] - s[i] - t[i]);
            r[n - 1] = f[n - 1] - 0.05 * (4 * c[n - 1] - b[n - 1] - a[n - 1] - s[n - 1] - t[n - 1]);
        }
}

/* Lines along x, eight at a time so that their chains of operations overlap. */
static void x_solve(void)
{
#pragma omp parallel for
    for (int k = 0; k < n; k++)
        for (int j0 = 0; j0 < n; j0 += 8) {
            int end = j0 + 8 < n ? j0 + 8 : n;
            for (int i = 1; i < n; i++)
                for (int j = j0; j < end; j++)
                    rhs[AT(i, j, k)] += x_low[AT(i, j, k)] * rhs[AT(i - 1, j, k)];
            for (int j = j0; j < end; j++)
                rhs[AT(n - 1, j, k)] *= x_diag[AT(n - 1, j, k)];
            for (int i = n - 2; i >= 0; i--)
                for (int j = j0; j < end; j++)
                    rhs[AT(i, j, k)] = rhs[AT(i, j, k)] * x_diag[AT(i, j, k)] + x_low[AT(i + 1, j, k)] * rhs[AT(i + 1, j, k)];
        }
}

/* One line of all points of a row, with the line before it: forward, the last one, backward. */
static inline void forward(size_t to, size_t from, const double *restrict low)
{
    double *restrict r = &rhs[to];
    const double *restrict p = &rhs[from];
    for (int i = 0; i < n; i++)
        r[i] += low[to + i] * p[i];
}

static inline void scale(size_t at, const double *restrict diag)
{
    for (int i = 0; i < n; i++)
        rhs[at + i] *= diag[at + i];
}

static inline void backward(size_t to, size_t from, const double *restrict low, const double *restrict diag)
{
    double *restrict r = &rhs[to];
    const double *restrict p = &rhs[from];
    for (int i = 0; i < n; i++)
        r[i] = r[i] * diag[to + i] + low[from + i] * p[i];
}

static void y_solve(void)
{
#pragma omp parallel for
    for (int k = 0; k < n; k++) {
        for (int j = 1; j < n; j++)
            forward(AT(0, j, k), AT(0, j - 1, k), y_low);
        scale(AT(0, n - 1, k), y_diag);
        for (int j = n - 2; j >= 0; j--)
            backward(AT(0, j, k), AT(0, j + 1, k), y_low, y_diag);
    }
}

static void z_solve(void)
{
#pragma omp parallel for
    for (int j = 0; j < n; j++) {
        for (int k = 1; k < n; k++)
            forward(AT(0, j, k), AT(0, j, k - 1), z_low);
        scale(AT(0, j, n - 1), z_diag);
        for (int k = n - 2; k >= 0; k--)
            backward(AT(0, j, k), AT(0, j, k + 1), z_low, z_diag);
    }
}

static void add(void)
{
    size_t points = (size_t)n * n * n;
#pragma omp parallel for
    for (size_t p = 0; p < points; p++)
        u[p] += 0.1 * (rhs[p] - 0.01 * u[p]);
}

/* Factors of the matrix with 1 + 2 s on and -s beside the diagonal, 1 + s at the walls: multipliers, inverse diagonal. */
static void factor(double *low, double *diag, size_t stride)
{
    const double s = 0.2;
    double *before = malloc((size_t)n * sizeof *before), *pivot = malloc((size_t)n * sizeof *pivot);
    if (!before || !pivot)
        exit(1);
    before[0] = 1;
    pivot[0] = 1 + s;
    for (int i = 1; i < n; i++) {
        before[i] = pivot[i - 1];
        pivot[i] = (i < n - 1 ? 1 + 2 * s : 1 + s) - s * s / pivot[i - 1];
    }
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++) {
                int along = stride == 1 ? i : stride == (size_t)n ? j : k;
                low[AT(i, j, k)] = s / before[along];
                diag[AT(i, j, k)] = 1 / pivot[along];
            }
    free(before);
    free(pivot);
}

static double *field(void)
{
    double *values = aligned_alloc(64, ((size_t)n * n * n * sizeof(double) + 63) / 64 * 64);
    if (!values) {
        fprintf(stderr, "adi: not enough memory\n");
        exit(1);
    }
#pragma omp parallel for
    for (int k = 0; k < n; k++)
        for (size_t p = AT(0, 0, k); p < AT(0, 0, k + 1); p++)
            values[p] = 0.5 + 0.004 * (double)(p % 97);
    return values;
}

int main(int argc, char **argv)
{
    n = argc > 1 ? atoi(argv[1]) : 32;
    long passes = coupling_passes(argc > 2 ? atol(argv[2]) : 200);
    if (n < 3) {
        fprintf(stderr, "usage: adi N [PASSES], N at least 3\n");
        return 2;
    }
    double **all[] = {&u, &forcing, &rhs, &x_low, &x_diag, &y_low, &y_diag, &z_low, &z_diag};
    for (size_t a = 0; a < sizeof all / sizeof *all; a++)
        *all[a] = field();
    factor(x_low, x_diag, 1);
    factor(y_low, y_diag, (size_t)n);
    factor(z_low, z_diag, (size_t)n * n);

    coupling_start();
    for (long pass = 0; pass < passes; pass++) {
        COUPLE("copy_faces", copy_faces());
        COUPLE("x_solve", x_solve());
        COUPLE("y_solve", y_solve());
        COUPLE("z_solve", z_solve());
        COUPLE("add", add());
    }
    coupling_stop();

    double sum = 0, most = 0;
    for (size_t p = 0; p < (size_t)n * n * n; p++) {
        sum += u[p] + rhs[p];
        most = fmax(most, fmax(fabs(u[p]), fabs(rhs[p])));
    }
    printf("checksum %.12g\n", sum);
    return !(most < 1e6); /* also where it is no number */
}
