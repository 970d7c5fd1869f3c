// Small enough that its output is a fixture: one template, one recursion, one operator[], a walk over memory.
#include <cstdlib>
template <typename T> struct Grid {
  T *cells; int n;
  T &operator[](int i) { return cells[i]; }
};
static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
template <typename T> __attribute__((noinline)) T walk(Grid<T> grid, int step) {
  T sum = 0;
  for (int start = 0; start < step; start++)
    for (int i = start; i < grid.n; i += step) sum += grid[i];
  return sum;
}
__attribute__((noinline)) double solve(Grid<double> grid) {
  return walk(grid, 1) + walk(grid, 64) + fibonacci(10);
}
int main(int count, char **) {
  Grid<double> grid{static_cast<double *>(std::calloc(65536, sizeof(double))), 65536 >> (count - 1)};
  return solve(grid) > 0 ? 0 : 1;
}
