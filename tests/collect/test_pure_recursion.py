"""Functions that call themselves with equal arguments again, and those that only look like them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_binary_code import compile_program, function

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = r"""
#include <stdlib.h>
struct tree { struct tree *left, *right; };
long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
long paths(int r, int c) { return r == 0 || c == 0 ? 1 : paths(r - 1, c) + paths(r, c - 1); }
int common(const char *a, const char *b, int i, int k) {
  if (!i || !k) return 0;
  if (a[i - 1] == b[k - 1]) return 1 + common(a, b, i - 1, k - 1);
  int x = common(a, b, i - 1, k), y = common(a, b, i, k - 1);
  return x > y ? x : y;
}
long coins(const int *c, int n, int amount) {
  if (amount == 0) return 1;
  if (amount < 0 || n == 0) return 0;
  return coins(c, n - 1, amount) + coins(c, n, amount - c[n - 1]);
}
int products(const int *p, int i, int k) {
  if (i == k) return 0;
  int best = 1 << 30;
  for (int m = i; m < k; m++) {
    int cost = products(p, i, m) + products(p, m + 1, k) + p[i - 1] * p[m] * p[k];
    if (cost < best) best = cost;
  }
  return best;
}
int count(const struct tree *t) { return t ? 1 + count(t->left) + count(t->right) : 0; }
long sum(const int *a, int low, int high) {
  if (high - low < 2) return a[low];
  int middle = (low + high) / 2;
  return sum(a, low, middle) + sum(a, middle, high);
}
int queens(int all, int left, int columns, int right) {
  if (columns == all) return 1;
  int found = 0;
  for (int open = all & ~(left | columns | right); open;) {
    int bit = open & -open;
    open -= bit;
    found += queens(all, (left | bit) << 1, columns | bit, (right | bit) >> 1);
  }
  return found;
}
int place(int n, int row, int *at) {
  int found = row == n;
  for (int i = 0; i < n && row < n; i++) {
    int free = 1;
    for (int k = 0; k < row; k++) free &= at[k] != i && abs(at[k] - i) != row - k;
    if (!free) continue;
    at[row] = i;
    found += place(n, row + 1, at);
  }
  return found;
}
int leaves[1 << 20];
long nodes(int at, int deep) {
  if (deep == 0) return leaves[at];
  return nodes(2 * at, deep - 1) + nodes(2 * at + 1, deep - 1);
}
long moves(int n) { return n ? 2 * moves(n - 1) + moves(n - 2 > 0 ? n - 2 : 0) : 1; }
int divisor(int a, int b) { return b ? divisor(b, a % b) : a; }
double area(double a, double b, int deep) {
  double m = (a + b) / 2;
  return deep == 0 ? m * (b - a) : area(a, m, deep - 1) + area(m, b, deep - 1);
}
int main(int n, char **v) {
  int a[20] = {n}, at[20] = {0};
  struct tree leaf = {0, 0};
  long once = count(&leaf) + sum(a, 0, n) + queens(n, 0, 0, 0) + place(n, 0, at) + divisor(n, 6) + (long)area(0, n, n);
  once += nodes(1, n) + moves(n);
  return (int)(once + fibonacci(n) + paths(n, n) + common(v[0], v[0], n, n) + coins(a, n, n) + products(a, 1, n));
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O3"])
def test_equal_arguments_are_told_from_different_ones(tmp_path: Path, level: str) -> None:
    program = compile_program(tmp_path, "gcc", SOURCE, level, "-g", "-fno-inline-functions-called-once")
    again = (
        "fibonacci",
        "paths",
        "common",
        "coins",
        "moves",
        *(("products",) if level == "-O1" else ()),
    )  # else in two parts
    others = ("count", "sum", "queens", "place", "nodes", "divisor", "area")
    for name in (*again, *others):
        assert function(program, name).loop_shares()["recomputed"] == (name in again), name
