// A sparse product whose first rows hold most of the entries.
#include <omp.h>
#include <cstdio>
#include <vector>

static void multiply(const std::vector<int> &first, const std::vector<int> &column, const std::vector<double> &value,
                     const std::vector<double> &x, std::vector<double> &y)
{
    const int rows = (int)y.size();
#ifdef REPAIRED
#pragma omp parallel for schedule(dynamic, 64)
#else
#pragma omp parallel for
#endif
    for (int i = 0; i < rows; i++) {
        double sum = 0.0;
        for (int e = first[i]; e < first[i + 1]; e++)
            sum += value[e] * x[column[e]];
        y[i] = sum;
    }
}

int main()
{
    const int rows = 20000;
    std::vector<int> first(1, 0), column;
    for (int i = 0; i < rows; i++) {
        const int entries = 5 + 600000 / (i + 300);
        for (int e = 0; e < entries; e++)
            column.push_back((int)((i + e * 7L) % rows));
        first.push_back((int)column.size());
    }
    std::vector<double> value(column.size(), 1e-3), x(rows, 1.0), y(rows);
    for (int pass = 0; pass < 150; pass++) {
        multiply(first, column, value, x, y);
        for (int i = 0; i < rows; i++)
            x[i] = 0.9 * x[i] + 0.1 * y[i];
    }
    std::printf("%g\n", x[7]);
}
