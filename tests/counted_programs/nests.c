/* Nests that OpenMP collapses, an array of rows of any length, a number read by sscanf: ./nests N M */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int n, m, j;
    if (argc != 3 || sscanf(argv[1], "%d", &n) != 1 || sscanf(argv[2], "%d", &m) != 1)
        return 1;
    double (*a)[m] = malloc(sizeof(double[n][m])), s = 0.0;
#pragma omp parallel for collapse(2)
    for (int i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            a[i][j] = 0.5 * i + j;
#pragma omp parallel for schedule(static, 1) reduction(+ : s)
    for (int i = 0; i < n; i++)
        for (int k = i; k < m; k++)
            s += a[i][k] * a[i][k];
    printf("%g\n", s);
    free(a);
    return 0;
}
