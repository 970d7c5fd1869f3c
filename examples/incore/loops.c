#include "loops.h"

long triad(long n, double *restrict a, const double *restrict b, const double *restrict c, double s)
{
    for (long i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
    return n;
}

long daxpy(long n, double *restrict y, const double *restrict x, double a)
{
    for (long i = 0; i < n; i++)
        y[i] += a * x[i];
    return n;
}

long ddot(long n, const double *restrict x, const double *restrict y, double *result)
{
    double sum = 0.0;
    for (long i = 0; i < n; i++)
        sum += x[i] * y[i];
    *result = sum;
    return n;
}

long horner(long n, const double *restrict c, double x, double *result)
{
    double p = 0.0;
    for (long i = 0; i < n; i++)
        p = p * x + c[i];
    *result = p;
    return n;
}

long jacobi(long rows, long columns, double *restrict to, const double *restrict from)
{
    for (long j = 1; j < rows - 1; j++)
        for (long i = 1; i < columns - 1; i++)
            to[j * columns + i] = 0.25 * (from[j * columns + i - 1] + from[j * columns + i + 1] +
                                          from[(j - 1) * columns + i] + from[(j + 1) * columns + i]);
    return (rows - 2) * (columns - 2);
}

long gauss_seidel(long rows, long columns, double *restrict u)
{
    for (long j = 1; j < rows - 1; j++)
        for (long i = 1; i < columns - 1; i++)
            u[j * columns + i] = 0.25 * (u[j * columns + i - 1] + u[j * columns + i + 1] +
                                         u[(j - 1) * columns + i] + u[(j + 1) * columns + i]);
    return (rows - 2) * (columns - 2);
}

/* The same numbers by a division and, all but rounded, by a multiplication with the reciprocal. */
long quotient(long n, double *restrict y, const double *restrict x, double a)
{
    for (long i = 0; i < n; i++)
        y[i] = x[i] / a;
    return n;
}

long reciprocal(long n, double *restrict y, const double *restrict x, double a)
{
    double factor = 1.0 / a;
    for (long i = 0; i < n; i++)
        y[i] = x[i] * factor;
    return n;
}

long strided(long n, long stride, double *restrict y, const double *restrict x)
{
    for (long i = 0; i < n; i++)
        y[i] = 2.0 * x[i * stride];
    return n;
}
