/* Jacobi's iteration with a 5-point stencil, until the largest change is small. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double sweep(int n, const double *u, double *v)
{
    double change = 0.0;
    for (int j = 1; j < n - 1; j++)
        for (int i = 1; i < n - 1; i++) {
            v[j * n + i] = 0.25 * (u[j * n + i - 1] + u[j * n + i + 1] + u[(j - 1) * n + i] + u[(j + 1) * n + i]);
            double difference = fabs(v[j * n + i] - u[j * n + i]);
            if (difference > change)
                change = difference;
        }
    return change;
}

int main(int count, char **words)
{
    int n = count > 1 ? atoi(words[1]) : 30;
    double *u = calloc(n * n, sizeof(double)), *v = calloc(n * n, sizeof(double)), change = 1.0;
    for (int i = 0; i < n; i++)
        u[i] = v[i] = 1.0;
    while (change > 1e-3) {
        change = sweep(n, u, v);
        double *t = u;
        u = v;
        v = t;
    }
    printf("%.12g\n", u[n + 1]);
    free(u);
    free(v);
    return 0;
}
