/* Smooths a field on a grid and adds up how alike its rows are. Slow in three ways; see ../README.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 1400 };

static double field[SIZE][SIZE], next[SIZE][SIZE];

static void fill(void)
{
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            field[i][j] = (double)((i * 31 + j * 17) % 101) / 101.0;
}

static void smooth(void)
{
    for (int j = 1; j < SIZE - 1; j++)
        for (int i = 1; i < SIZE - 1; i++)
            next[i][j] = 0.5 * field[i][j]
                         + 0.125 * (field[i - 1][j] + field[i + 1][j] + field[i][j - 1] + field[i][j + 1]);
    for (int j = 1; j < SIZE - 1; j++)
        for (int i = 1; i < SIZE - 1; i++)
            field[i][j] = next[i][j];
}

static double compare_rows(int rows)
{
    double sum = 0.0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < i; k++)
            for (int j = 0; j < SIZE; j++)
                sum += fabs(field[i][j] - field[k][j]);
    return sum;
}

int main(int count, char **words)
{
    int steps = count > 1 ? atoi(words[1]) : 40, rows = count > 2 ? atoi(words[2]) : 700;
    fill();
    for (int step = 0; step < steps; step++)
        smooth();
    printf("%.6f\n", compare_rows(rows));
    return 0;
}
