"""Counts as formulas, composed from the source: equal to what runs counted, on every rank, at every point."""

from __future__ import annotations

import shutil
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sympy

from advisor_processor.source.instrumented_run import count_runs
from advisor_processor.symbolic.formula_document import count_formulas
from advisor_processor.symbolic.integer_functions import Doublings, Quotient, Remainder, Step, evaluate_exactly
from advisor_processor.symbolic.integers import parse_condition, parse_integer
from advisor_processor.symbolic.program_formulas import derive_formulas
from advisor_processor.symbolic.sums import SumRules

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "tests" / "counted_programs"
EXAMPLES = ROOT / "examples" / "count"
N, P = sympy.Symbol("n", integer=True), sympy.Symbol("P", integer=True, positive=True)
I = sympy.Symbol("t1", integer=True, nonnegative=True)  # noqa: E741

SUMS = [
    I**3 + N,
    I * Step(N - 3 - 2 * I),
    I * Quotient(3 * I + N, 4),
    (I + 1) * Step(Remainder(I + N, 2) - 1),
    I * Quotient(I, P),
    Remainder(I, P) ** 2,
    Quotient(I + N, P) + I * Step(Remainder(I, P) - 2),
    I**2 * Step(I - 3) * Step(N - 5 - I),
    I * Step(Quotient(I, P) - 1),
    Quotient(N * I, P),
    Quotient(2 * N - I, P),
    Step(P * I - N) * I,
    2**I * Step(N - I - 2),
]


@pytest.mark.parametrize("x", SUMS, ids=str)
def test_a_sum_is_what_adding_up_gives(x: Any) -> None:  # noqa: ANN401
    for holds in (lambda _: False, lambda c: all(known(c, n, p) for n, p in product((12, 13, 20), (2, 3, 5)))):
        total = SumRules(holds).sum_range(x, I, N, ())
        for n, p in product((12, 13, 20), (2, 3, 5)):
            by_hand = sum(evaluate_exactly(x, {"n": n, "P": p, "t1": each}) for each in range(n))
            assert evaluate_exactly(total, {"n": n, "P": p}) == by_hand


def known(condition: Any, n: int, p: int) -> bool:  # noqa: ANN401
    try:
        return evaluate_exactly(condition, {"n": n, "P": p}) >= 0
    except KeyError:
        return False


def test_sums_of_loops_that_a_reader_would_sum_are_closed() -> None:
    rules = SumRules(lambda _: True)
    assert rules.sum_range(I, I, N, ()) == sympy.expand(N * (N - 1) / 2)
    assert not any(rules.sum_range(x, I, N, ()).has(sympy.Sum) for x in SUMS[:9])
    assert SumRules(lambda _: False).sum_range(Quotient(N * I, P), I, N, ()).has(sympy.Sum)


def test_doublings_are_whole() -> None:
    assert [Doublings(sympy.Integer(n)) for n in (0, 1, 2, 3, 4, 5, 1024, 1025)] == [0, 0, 1, 2, 2, 3, 10, 11]


class Names:
    """Values of names, as a walk of a program gives them."""

    def name_value(self, name: str) -> Any:  # noqa: ANN401
        return {"n": N, "grid.n": N + 1, "size": P, "rank": I}.get(name)

    def call_value(self, name: str, arguments: Sequence[Any], written: Sequence[str]) -> Any:  # noqa: ANN401
        return sympy.Integer(len(written)) if name == "count" and None not in arguments else None

    def element_value(self, name: str, subscripts: Sequence[Any]) -> Any:  # noqa: ANN401
        return None

    def is_nonnegative(self, value: Any) -> Any:  # noqa: ANN401
        return Step(value)

    def object_size(self, name: str) -> int | None:
        return 8 if name in ("*a", "a") else None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(size_t)n * sizeof(double)", 8 * N),
        ("n << 2", 4 * N),
        ("(n + 3) & 3", Remainder(N + 3, 4)),
        ("grid->n - 1", N),
        ("TILE * n", 4 * N),
        ("AT(n, 2)", 3 * N + 2),
        ("n % size", Remainder(N, P)),
        ("count(n, 0x10)", sympy.Integer(2)),
        ("std::min<int>(n, n + 2)", None),
        ("MIN(n, n)", N),
        ("1 ? n : unknown", N),
        ("n * 2.5", None),
        ("a[n]", None),
        ("unknown * 0", None),
        ("n +", None),
        ("\"text\"", None),
        ("malloc(n", None),
    ],
)  # fmt: skip
def test_expressions_of_c(text: str, value: Any) -> None:  # noqa: ANN401
    macros = {
        "TILE": (None, "2 + 2"),
        "AT": (("i", "j"), "(i) * 3 + (j)"),
        "MIN": (("a", "b"), "((a) < (b) ? (a) : (b))"),
    }
    assert parse_integer(text, Names(), macros) == value


def test_expressions_of_fortran() -> None:
    assert parse_integer("grid%n - mod(n, 3) + 2**3", Names(), {}, fortran=True) == N + 9 - Remainder(N, 3)
    found = parse_condition("n .ge. 2 .and. rank /= 0", Names(), {}, fortran=True)
    for n, rank in product(range(4), range(3)):
        assert evaluate_exactly(found, {"n": n, "t1": rank}) == int(n >= 2 and rank != 0)


#: Programs with their arguments: 20 points each.
ONE = tuple((n,) for n in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 20, 23, 27, 31, 32, 40))
TWO = tuple(product((6, 9, 12, 17, 25), (2, 3, 4, 5)))
CASES = [
    (EXAMPLES / "gauss.c", ONE), (EXAMPLES / "matmul.c", ONE), (EXAMPLES / "matmul.f90", ONE),
    (EXAMPLES / "stencil.c", TWO), (EXAMPLES / "cg.c", TWO),
    (PROGRAMS / "tiles.c", TWO), (PROGRAMS / "redblack.c", TWO), (PROGRAMS / "triangle.cpp", ONE),
    (PROGRAMS / "butterflies.c", ONE), (PROGRAMS / "bodies.c", TWO), (PROGRAMS / "histogram.c", TWO),
    (PROGRAMS / "merge.c", ONE), (PROGRAMS / "levels.c", tuple(product((2, 3, 4, 5, 6), (1, 2, 3, 4)))),
    (PROGRAMS / "rows.c", TWO), (PROGRAMS / "directions.f90", TWO), (PROGRAMS / "panels.f90", ONE),
    (PROGRAMS / "cubes.c", TWO),
]  # fmt: skip


def require_compiler(source: Path) -> None:
    compiler = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}[source.suffix]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here: apt-get install {compiler}")


@pytest.mark.parametrize(("source", "points"), CASES, ids=lambda each: each.name if isinstance(each, Path) else "")
def test_a_formula_is_what_twenty_runs_counted(source: Path, points: tuple[tuple[int, ...], ...]) -> None:
    require_compiler(source)
    assert len(points) == 20
    runs = count_runs([source], [["./program", *map(str, point)] for point in points])
    found = derive_formulas(runs)
    assert [each.block.line for each in found.blocks if not each.exact] == []
    counted = {
        name: [sum(b.work.operations.get(name, 0) * sum(run.blocks[k][b.number])
                   for k, s in enumerate(run.sources) for b in s.blocks) for run in runs]
        for name in ("fp_add", "fp_mul", "fp_fma", "fp_div")
    }  # fmt: skip
    for name, values in counted.items():
        for at, value in enumerate(values):
            given = {f"argv{k}": number for k, number in enumerate(points[at], start=1)} | {"P": 1, "rank": 0}
            given |= {symbol: Fraction(each[at]).limit_denominator(10**6) for symbol, each in found.opaque.items()}
            assert evaluate_exactly(found.totals.get(name, sympy.Integer(0)), given) == value


#: What the data of these programs decide; all else is a formula of the arguments.
DECIDED = {"cg.c": 2, "stencil.c": 2, "histogram.c": 3, "merge.c": 6, "rows.c": 1}


def test_only_what_data_decide_is_left_as_a_symbol(tmp_path: Path) -> None:
    for source in (PROGRAMS / "tiles.c", PROGRAMS / "rows.c"):
        require_compiler(source)
        runs = count_runs([source], [["./program", "9", "3"], ["./program", "16", "5"]])
        assert len(derive_formulas(runs).opaque) == DECIDED.get(source.name, 0)


def test_a_header_counts_with_the_file_that_includes_it() -> None:
    require_compiler(PROGRAMS / "redblack.c")
    runs = count_runs([PROGRAMS / "redblack.c"], [["./program", "9", "3"]])
    assert [source.file for source in runs[0].sources] == ["redblack.c", "redblack.h"]
    relaxed = next(b for b in runs[0].sources[1].blocks if b.function == "relax")
    assert runs[0].blocks[1][relaxed.number] == (6,)
    again = count_runs([PROGRAMS / "redblack.c", PROGRAMS / "redblack.h"], [["./program", "9", "3"]])
    assert again[0].blocks == runs[0].blocks


MPI = [
    (PROGRAMS / "halo.f90", "mpifort", ((7, 3), (12, 4))),
    (PROGRAMS / "wavefront.c", "mpicc", ((7, 3), (12, 5))),
]


@pytest.mark.parametrize(("source", "compiler", "points"), MPI, ids=lambda each: getattr(each, "name", ""))
def test_messages_of_ranks_are_formulas_too(
    source: Path, compiler: str, points: tuple[tuple[int, ...], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(compiler) is None or shutil.which("mpirun") is None:
        pytest.skip(f"there is no {compiler} here: apt-get install openmpi-bin libopenmpi-dev")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    template = ["mpirun", "--oversubscribe", "-n", "{P}", "./program", "{N}", "{S}"]
    at = [{"N": n, "S": s, "P": p} for n, s in points for p in (1, 2, 3)]
    found = count_formulas([source], template, at, f"{compiler} -O1 {source.name} -o program")["formulas"]
    assert found["exact"]
    assert not found["unknown"]
    assert not found["opaque"]
    for name, counted in (("messages", count_messages), ("bytes", count_bytes)):
        for values in at:
            symbols = {sympy.Symbol(key, positive=True): value for key, value in values.items()}
            assert found["columns"][name].subs(symbols) == Fraction(counted(source.name, values), values["P"])


def count_messages(program: str, at: dict[str, int]) -> int:
    """Messages of all ranks, by hand from the source."""
    n, s, p = at["N"], at["S"], at["P"]
    tree = p * (p - 1).bit_length()
    if program == "halo.f90":
        return 2 * tree + s * 2 * (p - 1) + s // 2 * tree
    return (p - 1) * -(-n // s) + p // 2 + tree


def count_bytes(program: str, at: dict[str, int]) -> int:
    n, s, p = at["N"], at["S"], at["P"]
    tree = p * (p - 1).bit_length()
    if program == "halo.f90":
        return 2 * tree * 4 + s * 2 * (p - 1) * 8 * n + s // 2 * tree * 8
    return (p - 1) * 8 * n + p // 2 * 8 * n
