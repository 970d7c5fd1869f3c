#include <stdlib.h>
enum { COLORS = 2, FIRST = 1 };
struct grid {
    int n;
    double *u;
};

static inline void make_grid(struct grid *g, int n)
{
    g->n = n;
    g->u = calloc((size_t)n * n, sizeof(double));
}

static inline void relax(struct grid *g, int color)
{
    int n = g->n;
    for (int i = FIRST; i <= n - 2; ++i)
        for (int j = FIRST + (i + color) % COLORS; j < n - 1; j += 2)
            g->u[i * n + j] = 0.25 * (g->u[i * n + j - 1] + g->u[i * n + j + 1] + g->u[(i - 1) * n + j] + g->u[(i + 1) * n + j]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (i == 0 || j == 0 || i == n - 1 || j == n - 1)
                g->u[i * n + j] = 1.0;
            else if (i == j)
                g->u[i * n + j] *= 0.5;
}
