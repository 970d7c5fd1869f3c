// A small system of equations for each cell, whose vectors are allocated each time.
#include <cstdio>
#include <vector>

static double advance_cell(double x)
{
#ifdef REPAIRED
    double state[6], slope[6];
    for (int i = 0; i < 6; i++)
        state[i] = x;
#else
    std::vector<double> state(6, x), slope(6);
#endif
    for (int i = 0; i < 6; i++)
        slope[i] = 0.1 * (state[(i + 1) % 6] - state[i]) + 1e-3 * i;
    for (int i = 0; i < 6; i++)
        state[i] += slope[i];
    return state[0] + state[5];
}

int main()
{
    double sum = 0.0;
    for (int step = 0; step < 60; step++)
        for (int cell = 0; cell < 200000; cell++)
            sum += advance_cell(1e-6 * cell + sum * 1e-12);
    std::printf("%f\n", sum);
}
