"""Loops that wait for loads, as samples show them: pointers, scattered numbers, links; transpositions and old code."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from compiled_programs import compile_program
from profiles_of_code import profile_of, seconds_of

from advisor.collect.binaries.disassembly import Instruction, disassemble
from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.load_chains import find_load_chain
from advisor.collect.binaries.memory_accesses import name_origins, read_access
from advisor.collect.binaries.program_code import describe_code
from advisor.collect.binaries.sampled_instructions import FEW, read_samples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.collect.binaries.elf_files import ElfImage
    from advisor.collect.binaries.hot_functions import FunctionCode

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code of programs is looked into on x86-64")

SOURCE = """
struct node { struct node *next; double value; long pad[6]; };
double list(const struct node *p) { double s = 0.0; for (; p; p = p->next) s += p->value; return s; }
long links(const int *next, long i, long n) { long k = 0; while (i != n) { i = next[i]; k++; } return k; }
void gather(long n, const int *i, const double *x, double *restrict y)
  { for (long k = 0; k < n; k++) y[k] = 2.0 * x[i[k]]; }
double dense(long n, const double *x) { double s = 0.0; for (long i = 0; i < n; i++) s += x[i]; return s; }
void twice(long n, const double *x, double *restrict y)
  { for (long i = 0; i < n; i++) y[i] = x[i] * x[i];
    for (long i = 0; i < n; i++) y[i] = 1.0 / (y[i] + x[i]); }
void turn(int n, const double *a, double *b)
  { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) b[(long)j * n + i] = a[(long)i * n + j]; }
double crossed(double a[300][300], double b[300][300])
  { double s = 0.0; for (int i = 0; i < 300; i++) for (int j = 0; j < 300; j++) s += a[i][j] * b[j][i]; return s; }
void product(int n, const double *a, const double *b, double *c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {
    double s = 0.0;
    for (int k = 0; k < n; k++) s += a[(long)i * n + k] * b[(long)k * n + j];
    c[(long)i * n + j] = s; } }
void columns(int n, const double *a, double *s)
  { for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) s[j] += a[(long)i * n + j]; }
double fold(double x, double box) { while (x > 0.5 * box) x -= box; return x; }
int main(int argc, char **argv) { return argc + (argv == 0); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = ("-O2", "-fno-inline", "-fno-tree-vectorize", "-g")
    return compile_program(tmp_path_factory.mktemp("loads"), "gcc", SOURCE, *options)


def code_of(program: Path, name: str) -> tuple[ElfImage, Sequence[Instruction]]:
    image = read_elf(program)
    symbol = next(one for one in image.functions if one.name == name)
    return image, disassemble(image, symbol.begin, symbol.end)


def analyze(program: Path, name: str, sampled: dict[int, int] | None = None) -> FunctionCode:
    image = read_elf(program)
    return analyze_function(image, next(one for one in image.functions if one.name == name), None, sampled)


@pytest.mark.parametrize(
    ("name", "chain"), [("list", "pointer"), ("links", "table"), ("gather", None), ("dense", None), ("turn", None)]
)
def test_chains_of_loads_are_told_from_loads_that_are_known_beforehand(
    program: Path, name: str, chain: str | None
) -> None:
    assert analyze(program, name).loops[-1].load_chain == chain


def test_a_short_walk_along_pointers_waits_for_them_whatever_the_samples_say(program: Path) -> None:
    assert analyze(program, "list").loop_shares()["pointer"] == 1.0


def test_samples_behind_a_scattered_load_wait_for_it(program: Path) -> None:
    _, code = code_of(program, "gather")
    load = next(one for one in code if one.mnemonic == "movsd" and one.operands[0].startswith("xmm"))
    after = next(one.address for one in code if one.address > load.address)
    shares = analyze(program, "gather", {after: 90, code[0].address: 10}).loop_shares()
    assert shares["scatter"] == pytest.approx(0.9)
    assert shares["pointer"] == 0.0
    spread = {one.address: 10 for one in code}
    assert analyze(program, "gather", spread).loop_shares()["scatter"] == 0.0, "no instruction stands out"


def test_samples_behind_loads_in_order_wait_for_nothing_that_could_be_foreseen(program: Path) -> None:
    _, code = code_of(program, "dense")
    load = next(number for number, one in enumerate(code) if one.mnemonic == "addsd")
    found = read_samples(code, {code[load + 1].address: 100})
    assert found is not None
    assert found.waits == {}


def test_a_value_that_is_reduced_until_it_fits_is_no_sum(program: Path) -> None:
    (loop,) = analyze(program, "fold").loops
    assert loop.scalar
    assert loop.scalar_reason is None


def test_few_samples_say_nothing_of_places(program: Path) -> None:
    _, code = code_of(program, "dense")
    assert read_samples(code, {code[-1].address: FEW - 1}) is None


def test_loops_weigh_what_samples_say_and_not_what_their_depth_suggests(program: Path) -> None:
    guessed = analyze(program, "twice")
    first, second = guessed.loops
    assert guessed.time_shares()[0] > 0.3
    measured = analyze(program, "twice", {first.begin: 5, second.begin: 95})
    assert measured.time_shares() == pytest.approx((0.05, 0.95))
    assert measured.loop_shares()["slow"] == pytest.approx(0.95)
    assert measured.main_loop == second


@pytest.mark.parametrize(
    ("name", "transposes"), [("turn", True), ("crossed", True), ("product", False), ("columns", False)]
)
def test_an_interchange_that_only_moves_the_stride_is_a_transposition(
    program: Path, name: str, transposes: bool
) -> None:
    (loop,) = analyze(program, name).loops
    assert loop.strided
    assert loop.transposes is transposes
    assert analyze(program, name).loop_shares()["transposed"] == float(transposes)


@pytest.mark.parametrize(("options", "share"), [((), 1.0), (("-mavx2",), 0.0)])
def test_code_without_avx_is_for_the_oldest_processors(tmp_path: Path, options: tuple[str, ...], share: float) -> None:
    program = compile_program(tmp_path, "gcc", SOURCE, "-O3", "-fno-inline", *options)
    assert analyze(program, "dense").loop_shares()["baseline"] == share
    assert analyze(program, "links").loop_shares()["baseline"] == 0.0, "it computes nothing"


def test_an_address_that_is_reloaded_from_the_frame_stays_the_same() -> None:
    body = (
        Instruction(0, 5, "mov", ("r9", "qword ptr [rsp-88]")),
        Instruction(5, 6, "addss", ("xmm0", "dword ptr [r9+rax*4]")),
        Instruction(11, 5, "mov", ("r9", "qword ptr [rsp-96]")),
        Instruction(16, 4, "add", ("rax", "1")),
        Instruction(20, 2, "jne", ("0",), 0),
    )
    access = read_access(body[1])
    assert access is not None
    assert name_origins(body, 1, access, {"rax": 1}).terms == (("qword ptr [rsp-88]", 1), ("rax", 4))
    stored = (*body[:4], Instruction(20, 5, "mov", ("qword ptr [rsp-88]", "r9")), body[4])
    assert name_origins(stored, 1, access, {"rax": 1}).terms == access.terms


def test_a_chain_begins_only_where_a_value_comes_back() -> None:
    load = Instruction(0, 3, "mov", ("rdx", "qword ptr [rax+16]"))
    back = Instruction(3, 3, "mov", ("rax", "rdx"))
    assert find_load_chain((load, back)) == "pointer"
    assert find_load_chain((load, Instruction(3, 3, "add", ("rax", "8")))) is None
    assert find_load_chain((load, Instruction(3, 3, "mov", ("rax", "rcx")))) is None


def test_seconds_of_a_run_go_where_its_samples_lie(program: Path) -> None:
    image, code = code_of(program, "twice")
    first, second = analyze(program, "twice").loops
    offset, address, _ = next(one for one in image.segments if one[1] <= code[0].address < one[1] + one[2])
    places = tuple((one.begin - address + offset, count) for one, count in ((first, 10), (second, 30)))
    profile = profile_of(("twice",), (2.0,))
    assert seconds_of(describe_code(replace(profile, sampled_code=places), program), "division") == pytest.approx([1.5])
