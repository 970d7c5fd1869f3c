/* Six loops that are bound by different things; each returns how many iterations its innermost loop did. */
#ifndef LOOPS_H
#define LOOPS_H

long triad(long n, double *restrict a, const double *restrict b, const double *restrict c, double s);
long daxpy(long n, double *restrict y, const double *restrict x, double a);
long ddot(long n, const double *restrict x, const double *restrict y, double *result);
long horner(long n, const double *restrict c, double x, double *result);
long jacobi(long rows, long columns, double *restrict to, const double *restrict from);
long gauss_seidel(long rows, long columns, double *restrict u);
long quotient(long n, double *restrict y, const double *restrict x, double a);
long reciprocal(long n, double *restrict y, const double *restrict x, double a);
long strided(long n, long stride, double *restrict y, const double *restrict x);

#endif
