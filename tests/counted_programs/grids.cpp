// A stencil with a class for its grids, whose accesses are overloaded: ./grids N STEPS
#include <cstdlib>
#include <string>
#include <vector>
class Grid {
public:
  Grid(int nx, int ny) : nx_(nx), ny_(ny), data_(static_cast<size_t>(nx) * ny, 0.0) {}
  double &operator()(int i, int j) { return data_[i * ny_ + j]; }
  double operator()(int i, int j) const { return data_[i * ny_ + j]; }
  int nx() const { return nx_; }
  int ny() const { return ny_; }
private:
  int nx_, ny_;
  std::vector<double> data_;
};
static double step(const Grid &from, Grid &to, double dt) {
  double change = 0.0;
  for (int i = 1; i < from.nx() - 1; ++i)
    for (int j = 1; j < from.ny() - 1; ++j) {
      to(i, j) = from(i, j) + dt * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1) - 4.0 * from(i, j));
      change += to(i, j) - from(i, j);
    }
  return change;
}
int main(int argc, char **argv) {
  int n = std::atoi(argv[1]), steps = std::stoi(argv[2]);
  Grid a(n, n), b(n, n);
  for (int j = 0; j < a.ny(); ++j) a(0, j) = b(0, j) = 1.0;
  Grid *from = &a, *to = &b;
  double t = 0.0, change = 0.0;
  for (int s = 0; s < steps; ++s, t += 0.1) { change = step(*from, *to, 0.1); std::swap(from, to); }
  return change > 1e30;
}
