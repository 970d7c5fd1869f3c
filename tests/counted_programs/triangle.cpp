// A Cholesky factorization and the triangular solves, with C++'s vectors: ./triangle N
#include <cmath>
#include <cstdlib>
#include <vector>

static void factor(std::vector<double> &a, const int n)
{
    for (int j = 0; j < n; ++j) {
        double sum = a[j * n + j];
        for (int k = 0; k < j; ++k)
            sum -= a[j * n + k] * a[j * n + k];
        a[j * n + j] = std::sqrt(sum);
        for (int i = j + 1; i < n; ++i) {
            double s = a[i * n + j];
            for (int k = 0; k < j; ++k)
                s -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = s / a[j * n + j];
        }
    }
}

static void solve(const std::vector<double> &a, std::vector<double> &x, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            x[i] -= a[i * n + j] * x[j];
    for (int i = n - 1; i >= 0; --i)
        for (int j = n - 1; j > i; j--)
            x[i] -= a[j * n + i] * x[j];
}

int main(int argc, char *argv[])
{
    const int n = std::atoi(argv[1]);
    std::vector<double> a(n * n), x(n, 1.0);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            a[i * n + j] = i == j ? n + 1.0 : 1.0 / (1 + i + j);
    factor(a, n);
    for (int again = 0; again < 3; again++)
        solve(a, x, n);
    return x[0] < -1e30;
}
