"""Loops that walk down rows behind pointers, search, take a few numbers of each object, or work around short loops."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.disassembly import disassemble
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.trace.library_functions import classify_library_function

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.collect.binaries.hot_functions import FunctionCode

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code of programs is looked into on x86-64")

SOURCE = """
struct body { double x, y, z, mass, vx, vy, vz, age; };
struct pair { double re, im; };
void product(int n, double **a, double **b, double **c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {
    double s = 0.0;
    for (int k = 0; k < n; k++) s += a[i][k] * b[k][j];
    c[i][j] = s; } }
void turn(int n, double **a, double **b)
  { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) b[j][i] = a[i][j]; }
double objects(int n, int m, double **part, double *s)
  { for (int j = 0; j < m; j++) for (int i = 0; i < n; i++) s[j] += part[i][0]; return s[0]; }
struct city { int id; float x, y; };
long locate(const struct city *x, long n, int wanted) { long k = 0; while (k < n && x[k].id != wanted) k++; return k; }
long find(const int *x, long n, int wanted) { long k = 0; while (k < n && x[k] != wanted) k++; return k; }
long bracket(const double *x, long n, double wanted)
  { long k = 0; while (k < n - 1 && x[k + 1] <= wanted) k++; return k; }
long length(const char *text) { const char *p = text; while (*p != '/') p++; return p - text; }
long least(const int *x, long n)
  { long best = 0; for (long k = 1; k < n; k++) if (x[k] < x[best]) best = k; return best; }
long count(const int *x, long n) { long found = 0; for (long k = 0; k < n; k++) found += x[k] > 5; return found; }
double centre(const struct body *b, long n)
  { double s = 0.0; for (long i = 0; i < n; i++) s += b[i].x * b[i].x + b[i].y * b[i].y + b[i].z * b[i].z; return s; }
double potential(const struct body *b, long n)
  { double s = 0.0; for (long i = 0; i < n; i++) s += b[i].mass / (b[i].x * b[i].y + b[i].z); return s; }
double power(const struct pair *p, long n)
  { double s = 0.0; for (long i = 0; i < n; i++) s += p[i].re * p[i].re + p[i].im * p[i].im; return s; }
void fold(long n, const int *index, double *x, double *y, double box) {
  for (long i = 0; i < n; i++) {
    double d = x[index[i]] * 1.5 - box;
    while (d > box) d -= 2 * box;
    y[i] += d * d * box; } }
void carry(long n, const double *x, int *digit, double scale) {
  int left = 0;
  for (long i = 0; i < n; i++) {
    double value = (x[i] + left) * scale;
    left = (int)value;
    digit[i] = (int)((value - left) * 10.0); } }
double largest(long n, const double *x)
  { double m = x[0]; for (long i = 1; i < n; i++) m = x[i] > m ? x[i] : m; return m; }
void rows(long n, long step, const double *restrict x, double *restrict y) {
  for (long i = 0; i < n; i++, x += step) {
    y[0] += x[0]; y[1] += x[1]; y[2] += x[2]; y[3] += x[3]; } }
void column(long n, long step, const double *restrict x, double *restrict y)
  { for (long i = 0; i < n; i++, x += step) y[0] += x[0]; }
void both(long n, const float *restrict a, float *restrict b, const float *restrict c, float *sum) {
  for (long i = 0; i < n; i++) b[i] = a[i] * 3.0f;
  float s = 0.0f;
  for (long i = 0; i < n; i++) s += c[i] * b[i];
  *sum = s; }
int main(int argc, char **argv) { return argc + (argv == 0); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("-O2", "-fno-inline", "-fno-tree-vectorize", "-g")
    return compile_program(tmp_path_factory.mktemp("data"), "gcc", SOURCE, *options)


def analyze(program: Path, name: str, sampled: dict[int, int] | None = None) -> FunctionCode:
    image = read_elf(program)
    return analyze_function(image, next(one for one in image.functions if one.name == name), None, sampled)


@pytest.mark.parametrize(("name", "transposes"), [("product", False), ("turn", True)])
def test_a_column_of_rows_behind_pointers_is_walked_in_steps(program: Path, name: str, transposes: bool) -> None:
    (loop,) = analyze(program, name).loops
    assert (loop.strided, loop.indexed, loop.transposes) == (1, 0, transposes)


def test_objects_behind_pointers_have_no_rows(program: Path) -> None:
    (loop,) = analyze(program, "objects").loops
    assert (loop.strided, loop.indexed) == (0, 1)


@pytest.mark.parametrize(
    ("name", "searches"),
    [("find", True), ("bracket", True), ("length", True), ("least", False), ("count", False), ("centre", False)],
)
def test_a_loop_that_only_compares_until_one_fits_searches(program: Path, name: str, searches: bool) -> None:
    code = analyze(program, name)
    assert [loop.searches for loop in code.loops] == [searches]
    assert code.loop_shares()["search"] == float(searches)


def test_a_search_through_objects_has_no_better_order(program: Path) -> None:
    shares = analyze(program, "locate").loop_shares()
    assert (shares["search"], shares["strided"]) == (1.0, 0.0)


@pytest.mark.parametrize(("name", "reason"), [("centre", "objects"), ("power", "order")])
def test_a_few_numbers_of_each_object_are_told_from_complex_numbers(program: Path, name: str, reason: str) -> None:
    (loop,) = analyze(program, name).loops
    assert loop.scalar_reason == reason
    assert not loop.strided


@pytest.mark.parametrize(("behind", "reason"), [("div", "order"), ("mul", "objects")])
def test_it_does_not_matter_how_numbers_lie_where_a_loop_waits_for_divisions(
    program: Path, behind: str, reason: str
) -> None:
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == "potential")
    code = disassemble(image, symbol.begin, symbol.end)
    waited = next(one.address + one.size for one in code if one.mnemonic.removeprefix("v").startswith(behind))
    sampled = {one.address: 2 for one in code} | {waited: 100}
    (loop,) = analyze(program, "potential", sampled).loops
    assert (loop.scalar_reason, loop.interleaved > 0) == (reason, True)


def test_a_loop_that_spends_its_time_around_a_short_one_counts_instead(program: Path) -> None:
    (short,) = analyze(program, "fold").loops
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == "fold")
    everywhere = dict.fromkeys(range(symbol.begin, symbol.end), 10)
    (around,) = analyze(program, "fold", everywhere).loops
    assert around.begin <= short.begin
    assert short.end < around.end
    assert (around.around, around.scalar_reason) == (True, "branch")
    inside = {place: 10 if short.begin <= place < short.end else 1 for place in everywhere}
    assert analyze(program, "fold", inside).loops == (short,)


def test_a_carry_through_integers_is_a_recurrence(program: Path) -> None:
    (loop,) = analyze(program, "carry").loops
    assert loop.scalar_reason == "recurrence"


def test_the_largest_number_is_a_reduction_whose_order_is_free(program: Path) -> None:
    (loop,) = analyze(program, "largest").loops
    assert loop.scalar_reason == "order"


@pytest.mark.parametrize(("name", "strided"), [("rows", 0), ("column", 1)])
def test_steps_over_lines_that_are_used_by_half_waste_nothing(program: Path, name: str, strided: int) -> None:
    (loop,) = analyze(program, name).loops
    assert loop.strided == strided


def test_without_lines_a_scalar_loop_with_most_of_the_time_is_no_remainder(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", SOURCE, "-O3", "-fno-inline")
    found = analyze(program, "both")
    scalar = next(loop for loop in found.loops if loop.ordered_sums)
    samples = dict.fromkeys(range(scalar.begin, scalar.end), 10)
    hot = analyze(program, "both", samples)
    assert any(loop.is_vector for loop in hot.loops)
    assert scalar.begin in [loop.begin for loop in hot.without_remainders({}).loops]
    assert scalar.begin not in [loop.begin for loop in found.without_remainders({}).loops]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("__strcmp_avx2", "string"), ("strlen", "length"), ("__memcmp_evex_movbe", "string"), ("strtod", "text"),
     ("__memchr_sse2", "string"), ("strategy", None), ("memcpy", "copy")],
)  # fmt: skip
def test_functions_that_compare_and_scan_text_are_known(name: str, kind: str | None) -> None:
    assert classify_library_function(name) == kind
