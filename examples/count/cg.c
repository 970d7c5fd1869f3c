/* Conjugate gradients on the 5-point Laplacian in compressed rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double dot(int m, const double *x, const double *y)
{
    double sum = 0.0;
    for (int i = 0; i < m; i++)
        sum += x[i] * y[i];
    return sum;
}

static void multiply(int m, const int *begin, const int *column, const double *value, const double *x, double *y)
{
    for (int i = 0; i < m; i++) {
        double sum = 0.0;
        for (int k = begin[i]; k < begin[i + 1]; k++)
            sum += value[k] * x[column[k]];
        y[i] = sum;
    }
}

static void axpy(int m, double a, const double *x, double *y)
{
    for (int i = 0; i < m; i++)
        y[i] += a * x[i];
}

static int laplacian(int n, int *begin, int *column, double *value)
{
    int k = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            int row = j * n + i;
            begin[row] = k;
            column[k] = row, value[k++] = 4.0;
            if (i > 0)
                column[k] = row - 1, value[k++] = -1.0;
            if (i < n - 1)
                column[k] = row + 1, value[k++] = -1.0;
            if (j > 0)
                column[k] = row - n, value[k++] = -1.0;
            if (j < n - 1)
                column[k] = row + n, value[k++] = -1.0;
        }
    begin[n * n] = k;
    return k;
}

int main(int count, char **words)
{
    int n = count > 1 ? atoi(words[1]) : 20, m = n * n;
    int *begin = malloc(sizeof(int) * (m + 1)), *column = malloc(sizeof(int) * 5 * m);
    double *value = malloc(sizeof(double) * 5 * m), *x = calloc(m, sizeof(double)), *r = malloc(sizeof(double) * m);
    double *p = malloc(sizeof(double) * m), *q = malloc(sizeof(double) * m);
    laplacian(n, begin, column, value);
    for (int i = 0; i < m; i++)
        r[i] = p[i] = 1.0;
    double rho = dot(m, r, r);
    while (rho > 1e-10) {
        multiply(m, begin, column, value, p, q);
        double alpha = rho / dot(m, p, q);
        axpy(m, alpha, p, x);
        axpy(m, -alpha, q, r);
        double next = dot(m, r, r);
        for (int i = 0; i < m; i++)
            p[i] = r[i] + next / rho * p[i];
        rho = next;
    }
    printf("%.12g\n", x[m / 2]);
    return 0;
}
