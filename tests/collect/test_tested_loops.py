"""Loops that divide integers, test more than they use, halve a range, look for the best, or go through objects."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.disassembly import disassemble
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.filter_loops import is_filter
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.integer_divisions import count_divisions
from advisor.collect.binaries.object_sizes import name_objects, read_object_sizes
from advisor.collect.binaries.registers import find_steps, find_writes
from advisor.collect.binaries.search_loops import is_bisection, is_selection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.hot_functions import FunctionCode

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code of programs is looked into on x86-64")

SOURCE = """
#include <assert.h>
struct particle { double x, v, more[20]; };
namespace std { struct hidden { double numbers[30]; }; hidden kept; }
extern "C" {
void ring(int n, const double *a, double *b)
  { for (int i = 0; i < n; i++) b[i] = a[(i + 1) % n] + a[(i + n - 1) % n]; }
long rare(int n, const double *a, int m)
  { long s = 0; for (int i = 0; i < n; i++) { if (a[i] < 0.0) s += i % m; s ^= i; } return s; }
int near(int n, const double *x, const double *y, double a, double b, double *force) {
  int found = 0;
  for (int j = 0; j < n; j++) {
    double dx = x[j] - a, dy = y[j] - b, d = dx * dx + dy * dy;
    if (d < 1.0) { force[0] += (1.0 - d) * dx; force[1] += (1.0 - d) * dy; found++; }
  }
  return found;
}
void note(int i, int j, double d);
int pairs(int n, const double *x, const double *y, double reach) {
  int found = 0;
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++) {
      double dx = x[i] - x[j], dy = y[i] - y[j], d = dx * dx + dy * dy;
      if (__builtin_expect(d <= reach, 0)) { note(i, j, d); note(j, i, d); found++; }
    }
  return found;
}
double root(int n, const double *x, double limit) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) {
    double a = 1.0, was = 0.0;
    while ((a - was) * (a - was) > limit) { was = a; a = 0.5 * (a + x[i] / a); }
    note(i, i, a); note(i, i, was); sum += a * was;
  }
  return sum;
}
int folded(int n, const double *x, const double *y, double box, double *force) {
  int found = 0;
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++) {
      double dx = x[j] - x[i], dy = y[j] - y[i];
      if (dx >= 0.5 * box) dx -= box; else if (dx < -0.5 * box) dx += box;
      if (dy >= 0.5 * box) dy -= box; else if (dy < -0.5 * box) dy += box;
      double d = dx * dx + dy * dy;
      if (d < 1.0) { force[i] += (1.0 - d) * dx; force[j] -= (1.0 - d) * dy; found++; }
    }
  return found;
}
int place(const double *grid, int n, double x) {
  int lo = 0, hi = n;
  while (hi - lo > 1) { int mid = (lo + hi) / 2; if (grid[mid] <= x) lo = mid; else hi = mid; }
  return lo;
}
int nearest(int n, const double *distance, const char *done) {
  int found = -1; double best = 1e30;
  for (int i = 0; i < n; i++) if (!done[i] && distance[i] < best) { best = distance[i]; found = i; }
  return found;
}
double guarded(int n, const double *x, int m)
  { double s = 0.0; for (int i = 0; i < n; i++) { assert(i != m); s += x[i]; } return s; }
float mixed(long n, float *__restrict out, const float *__restrict a, const int *kind) {
  for (long i = 0; i < n; i++) {
    assert(kind[i] < 4);
    for (int k = 0; k < 8; k++) out[8 * i + k] = kind[i] * a[8 * i + k] * a[8 * i + k];
  }
  return out[0];
}
double rarely(long n, const double *x, int m) {
  double s = 0.0;
  for (long i = 0; i < n; i++) {
    double a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2], d = a * b - c, e = a * c - b, f = b * c - a;
    assert(i != m);
    s += (d * d + e * f - 2.0 * a) * (e * e + d * f - 3.0 * b) * (f * f + d * e - 4.0 * c) + a * b * c * (d + e + f);
  }
  return s;
}
double roots(long n, const double *x, const double *y, int m)
  { double s = 0.0; for (long i = 0; i < n; i++) { assert(i != m); s += x[i] / y[i]; } return s; }
long picked(long n, const int *at, const long *x, int m)
  { long s = 0; for (long i = 0; i < n; i++) { assert(at[i] != m); long v = x[at[i]]; s += v * v; } return s; }
double shared(long n, const int *at, const double *x, const double *y)
  { double s = 0.0; for (long i = 0; i < n; i++) s += x[at[i]] / y[i]; return s; }
double largest(int n, const double *x) { double m = 0.0; for (int i = 0; i < n; i++) if (x[i] > m) m = x[i]; return m; }
void push(long n, particle *p) { for (long i = 0; i < n; i++) { p[i].v -= 0.1 * p[i].x; p[i].x += 0.1 * p[i].v; } }
void rows(long n, double (*m)[23]) { for (long i = 0; i < n; i++) m[i][0] = 2.0 * m[i][5]; }
double clamped(long n, const double *x, double m)
  { double s = 0.0; for (long i = 0; i < n; i++) s += __builtin_fmin(x[i], m); return s; }
double inside(double x, double low, double high) { return __builtin_fmax(__builtin_fmin(x, high), low); }
double dense(long n, const double *x) { double s = 0.0; for (long i = 0; i < n; i++) s += x[i]; return s; }
}
void note(int i, int j, double d) { static volatile double kept; kept = i + j + d; }
int main(int argc, char **argv) { return argc + (argv == 0); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("tested")
    return compile_program(source, "g++", SOURCE, "-O2", "-fno-inline", "-fno-tree-vectorize", "-g")


def body_of(program: Path, name: str) -> Sequence[Instruction]:
    """The innermost loop of a function."""
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == name)
    loop = min(analyze_function(image, symbol, None).loops, key=lambda one: one.end - one.begin)
    return [one for one in disassemble(image, symbol.begin, symbol.end) if loop.begin <= one.address < loop.end]


def analyze(program: Path, name: str, sampled: dict[int, int] | None = None) -> FunctionCode:
    image = read_elf(program)
    return analyze_function(image, next(one for one in image.functions if one.name == name), None, sampled)


def test_divisions_that_overlap_hold_up_their_loop_wherever_its_samples_lie(program: Path) -> None:
    body = body_of(program, "ring")
    evenly = {one.address: 5 for one in body}
    assert count_divisions(body, evenly) == 2
    assert count_divisions(body, {}) == 0, "nothing says that they run"
    assert analyze(program, "ring", evenly).loop_shares()["quotient"] == pytest.approx(1.0)
    assert (
        analyze(program, "dense", {one.address: 9 for one in body_of(program, "dense")}).loop_shares()["quotient"] == 0
    )


def test_divisions_behind_a_branch_that_is_hardly_taken_do_not_count(program: Path) -> None:
    body = body_of(program, "rare")
    division = next(at for at, one in enumerate(body) if one.mnemonic == "idiv")
    beside = range(max(division - 6, 0), min(division + 6, len(body)))
    jumps = [at for at in range(len(body)) if body[at].jumps and body[at] is not body[-1]]
    assert jumps, "the compiler keeps the branch"
    outside = {one.address: 50 for at, one in enumerate(body) if at not in beside}
    assert outside
    assert count_divisions(body, outside) == 0
    assert count_divisions(body, {one.address: 50 for one in body}) == 1


@pytest.mark.parametrize(("name", "share"), [("clamped", 1.0), ("inside", 1.0), ("dense", 0.0)])
def test_calls_that_an_instruction_would_do_are_told(program: Path, name: str, share: float) -> None:
    shares = analyze(program, name).loop_shares()
    assert (shares["inlinable"], shares["call"]) == (share, 0.0), "a call is no other fault of the loop"


def test_checks_in_a_loop_that_waits_for_loads_cost_nothing(program: Path) -> None:
    body = body_of(program, "picked")
    behind = next(after.address for one, after in pairwise(body) if one.mnemonic == "mov" and "*8" in one.operands[1])
    evenly = {one.address: 10 for one in body}
    assert analyze(program, "picked", evenly).loop_shares()["checked"] == 1.0
    waiting = analyze(program, "picked", evenly | {behind: 200})
    assert waiting.loop_shares()["scatter"] > 0.4
    assert waiting.loop_shares()["checked"] == 0.0


def test_divisions_in_a_loop_that_waits_for_loads_go_on_meanwhile(program: Path) -> None:
    body = body_of(program, "shared")
    evenly = {one.address: 10 for one in body}
    assert analyze(program, "shared", evenly).loop_shares()["slow"] == 1.0
    load = next(at for at, one in enumerate(body) if one.mnemonic == "movsd" and "[" in one.operands[1])
    waiting = analyze(program, "shared", evenly | {body[load + 1].address: 200}).loop_shares()
    assert waiting["scatter"] > 0.4
    assert waiting["slow"] == 0.0


def behind_divisions(body: Sequence[Instruction]) -> list[Instruction]:
    return [after for one, after in pairwise(body) if one.mnemonic == "divsd"]


def sample_near(program: Path, passing: int) -> tuple[Sequence[Instruction], dict[int, int]]:
    """The loop over neighbours with 20 samples at each instruction, and so many in all behind its test."""
    body = body_of(program, "near")
    test = next(at for at, one in enumerate(body) if one.mnemonic.startswith("comis"))
    target = body[test + 1].target
    behind = [one for one in body[test + 2 :] if target is not None and one.address < target]
    sampled = {one.address: 20 for one in body if one not in behind}
    return body, sampled | {behind[0].address: passing}


def test_a_loop_whose_test_few_elements_pass_is_a_filter(program: Path) -> None:
    body, sampled = sample_near(program, 4)
    assert is_filter(body, 5000, sampled)
    assert not is_filter(body, 40, sampled), "so few are looked at in no time"
    assert not is_filter(body, None, sampled)
    assert not is_filter(*sample_near(program, 4)[:1], 5000, {body[0].address: 40}), "so few samples tell nothing"


def test_a_loop_that_jumps_back_at_several_places_lies_in_the_one_around_it(program: Path) -> None:
    (loop,) = analyze(program, "folded").loops
    assert loop.depth == 2


def test_a_filter_is_judged_by_the_samples_of_all_that_is_inlined_and_is_no_other_fault(program: Path) -> None:
    code = analyze(program, "near")
    (loop,) = code.loops
    filters = replace(code, loops=(replace(loop, filters=True),)).loop_shares()
    assert (filters["filter"], filters["branch"]) == (1.0, 0.0)
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == "near")
    whole = {one.address: 50 for one in body_of(program, "near")}
    part = {loop.begin: 50}
    assert analyze_function(image, symbol, None, whole, part=part).samples is not None
    assert analyze_function(image, symbol, None, whole, part=part).time_shares() == (1.0,)


def test_a_loop_whose_test_many_elements_pass_is_none(program: Path) -> None:
    body, sampled = sample_near(program, 400)
    assert not is_filter(body, 5000, sampled)
    dense = body_of(program, "dense")
    assert not is_filter(dense, 5000, {one.address: 90 for one in dense})


def count_filters(program: Path, name: str, inside: int, outside: int) -> float:
    """The share of filters where each instruction of the innermost loop has so many samples, and others have."""
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == name)
    loop = {one.address for one in body_of(program, name)}
    code = disassemble(image, symbol.begin, symbol.end)
    sampled = {one.address: inside if one.address in loop else outside for one in code}
    return analyze(program, name, {address: number for address, number in sampled.items() if number}).loop_shares()[
        "filter"
    ]


def test_work_that_compilers_put_behind_the_loop_is_behind_its_test(program: Path) -> None:
    assert count_filters(program, "pairs", 50, 0) == pytest.approx(1.0)
    assert count_filters(program, "pairs", 50, 50) == 0, "many pass, or the elements are few"
    assert count_filters(program, "pairs", 1, 0) == 0, "so few samples tell nothing"
    assert count_filters(program, "root", 50, 0) == 0, "it goes through no array"


def test_halving_a_range_is_a_search(program: Path) -> None:
    assert is_bisection(body_of(program, "place"))
    assert analyze(program, "place").loop_shares()["search"] == pytest.approx(1.0)
    for name in ("ring", "near", "push", "dense"):
        assert not is_bisection(body_of(program, name))


def test_steps_of_an_object_s_size_go_from_object_to_object(program: Path) -> None:
    image, code = read_elf(program), analyze(program, "push")
    sizes = read_object_sizes(image, [code.symbol.begin])
    assert 176 in sizes
    assert 240 not in sizes, "types of the library are nobody's particles"
    assert code.loop_shares()["strided"] == 1.0
    named = name_objects(code, sizes).loop_shares()
    assert (named["strided"], named["objects"]) == (0.0, 1.0)


def test_rows_of_a_matrix_stay_rows(program: Path) -> None:
    image, code = read_elf(program), analyze(program, "rows")
    sizes = read_object_sizes(image, [code.symbol.begin])
    assert 184 not in sizes
    assert name_objects(code, sizes).loop_shares()["strided"] == 1.0
    assert read_object_sizes(image, [0]) == frozenset(), "no source was compiled to there"


def test_loops_that_test_what_ends_in_a_report_are_checked(program: Path) -> None:
    assert analyze(program, "guarded").loop_shares()["checked"] == pytest.approx(1.0)
    assert analyze(program, "dense").loop_shares()["checked"] == 0.0


def test_a_check_among_many_other_instructions_does_not_make_a_loop_checked(program: Path) -> None:
    assert analyze(program, "rarely").loop_shares()["checked"] == 0.0


def test_a_loop_that_computes_with_vectors_beside_its_checks_is_not_checked(program: Path) -> None:
    source = SOURCE.replace("float mixed(", '__attribute__((optimize("O3"))) float mixed(')
    vectorized = compile_program(program.parent, "g++", source, "-O2", "-fno-inline", "-gdwarf")
    (loop,) = analyze(vectorized, "mixed").loops
    assert loop.is_vector
    assert analyze(vectorized, "mixed").loop_shares()["checked"] == 0.0


def test_checks_go_on_while_their_loop_waits_for_divisions(program: Path) -> None:
    held = analyze(program, "roots", {one.address: 200 for one in behind_divisions(body_of(program, "roots"))})
    assert held.loops[0].divides
    assert held.loop_shares()["checked"] == 0.0
    assert analyze(program, "roots").loop_shares()["checked"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "selects"), [("nearest", True), ("largest", False), ("near", False), ("dense", False)]
)
def test_a_loop_that_keeps_the_place_of_the_best_looks_for_it(program: Path, name: str, *, selects: bool) -> None:
    body = body_of(program, name)
    assert is_selection(body, find_steps(body, find_writes(body))) == selects
