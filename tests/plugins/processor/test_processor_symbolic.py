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
    from collections.abc import Callable, Sequence

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
    (PROGRAMS / "cubes.c", TWO), (PROGRAMS / "modules.f90", TWO), (PROGRAMS / "concurrent.f90", ONE),
    (PROGRAMS / "band.c", TWO), (PROGRAMS / "nests.c", TWO), (PROGRAMS / "accessors.c", TWO),
]  # fmt: skip
#: What OpenMP's directives say only holds where the compiler reads them.
BUILDS = {"concurrent.f90": "gfortran -O1 -fopenmp concurrent.f90 -o program",
          "nests.c": "gcc -O1 -fopenmp nests.c -o program"}  # fmt: skip


def require_compiler(source: Path) -> None:
    compiler = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}[source.suffix]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here: apt-get install {compiler}")


@pytest.mark.parametrize(("source", "points"), CASES, ids=lambda each: each.name if isinstance(each, Path) else "")
def test_a_formula_is_what_twenty_runs_counted(source: Path, points: tuple[tuple[int, ...], ...]) -> None:
    require_compiler(source)
    assert len(points) == 20
    runs = count_runs([source], [["./program", *map(str, point)] for point in points], BUILDS.get(source.name))
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


def count_directions(n: int, s: int) -> int:
    """Floating-point operations of modules.f90: rows of n and columns of n + 3 solved, with what is computed before."""
    solved = [8 * (length - 1) + 1 + 3 * length for length in (n, n + 3)]
    return n * (n + 3) + s * ((n + 1) * solved[0] + (n - 2) * solved[1])


def count_band(n: int, w: int) -> int:
    """Floating-point operations of band.c, added up: the root is a division, the first elements 10 w + 1."""
    total = n * w
    for j in range(n):
        total += 2 * (j - max(0, j - w)) + 1
        total += sum(2 * (j - max(0, i - w)) + 1 for i in range(j + 1, min(n - 1, j + w) + 1))
    return total + 2 * n


def count_concurrent(n: int) -> int:
    return n * n + n + sum(2 * i for i in range(1, n + 1)) + 2 * n + (n - 1) ** 2


def count_nests(n: int, m: int) -> int:
    return 2 * n * m + 2 * sum(max(m - i, 0) for i in range(n))


def count_accessors(n: int, s: int) -> int:
    return 2 * 5 * (n - 4) ** 2 * s


HAND = [
    ("accessors.c", count_accessors, TWO), ("modules.f90", count_directions, TWO), ("band.c", count_band, TWO),
    ("nests.c", count_nests, TWO), ("concurrent.f90", count_concurrent, ONE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "count", "points"), HAND, ids=lambda each: each if isinstance(each, str) else "")
def test_operations_are_those_of_a_reader(
    name: str, count: Callable[..., int], points: tuple[tuple[int, ...], ...]
) -> None:
    require_compiler(PROGRAMS / name)
    some = [["./program", *map(str, point)] for point in points[:3]]
    found = derive_formulas(count_runs([PROGRAMS / name], some, BUILDS.get(name)))
    assert not found.opaque
    for point in points:
        given = {f"argv{k}": number for k, number in enumerate(point, start=1)} | {"P": 1, "rank": 0}
        assert evaluate_exactly(found.totals["operations"], given) == count(*point)


def test_names_with_one_value_a_run_are_symbols() -> None:
    require_compiler(PROGRAMS / "options.c")
    points = [(n, s) for n in (6, 9, 12, 17) for s in (3, 4, 5, 8, 11)]
    runs = count_runs([PROGRAMS / "options.c"], [["./program", "-n", str(n), "-s", str(s)] for n, s in points])
    found = derive_formulas(runs)
    assert found.is_exact
    # the options themselves are data; the work is a formula of what they set
    assert not [name for name in found.totals["operations"].free_symbols if name.name not in ("n", "steps")]
    for at, (n, s) in enumerate(points):
        given = {"n": n, "steps": s, "P": 1, "rank": 0}
        by_hand = 0
        for t in range(s):
            by_hand += 3 * len(range(t % 2, n - 1, 2))
            by_hand += {0: -(-n // 3), 1: -(-n // 3), 2: 2 * n + 1, 3: 1}[t % 4]
        assert evaluate_exactly(found.totals["operations"], given) == by_hand
        assert [found.values[name][at] for name in ("n", "steps")] == [n, s]


def test_a_block_that_a_run_refutes_is_a_symbol_alone() -> None:
    require_compiler(PROGRAMS / "grids.cpp")
    points = [(6, 2), (9, 3), (12, 5)]
    runs = count_runs([PROGRAMS / "grids.cpp"], [["./program", str(n), str(s)] for n, s in points])
    found = derive_formulas(runs)
    assert not found.is_exact
    assert {each.block.function for each in found.blocks if not each.exact} == {"operator()"}
    for at, (n, s) in enumerate(points):
        given = {"argv1": n, "argv2": s, "P": 1, "rank": 0}
        given |= {symbol: Fraction(each[at]).limit_denominator(10**6) for symbol, each in found.opaque.items()}
        # five sums and two products, then two sums for the change
        assert evaluate_exactly(found.totals["operations"], given) == s * (9 * (n - 2) ** 2 + 1)


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
    (PROGRAMS / "line.c", "mpicc", ((7, 3), (12, 11))),
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
    found = count_formulas([source], template, at)["formulas"]
    assert found["exact"]
    assert not found["unknown"]
    assert not found["uncertain"]
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
    if program == "line.c":
        return s * 2 * (p - 1) + p - 1 + s // 5 * tree
    return (p - 1) * -(-n // s) + p // 2 + tree


def count_bytes(program: str, at: dict[str, int]) -> int:
    n, s, p = at["N"], at["S"], at["P"]
    tree = p * (p - 1).bit_length()
    if program == "halo.f90":
        return 2 * tree * 4 + s * 2 * (p - 1) * 8 * n + s // 2 * tree * 8
    if program == "line.c":
        return (s * 2 + 1) * (p - 1) * 8 * n + s // 5 * tree * 8
    return (p - 1) * 8 * n + p // 2 * 8 * n


def test_neighbours_in_a_grid_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        pytest.skip("there is no mpicc here: apt-get install openmpi-bin libopenmpi-dev")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    shapes = {1: (1, 1), 2: (2, 1), 4: (2, 2)}
    commands = [["mpirun", "--oversubscribe", "-n", str(p), "./program", "12"] for p in shapes]
    found = derive_formulas(count_runs([PROGRAMS / "grid.c"], commands))
    assert found.is_exact
    assert not found.opaque
    assert found.uncertain == ("the messages of MPI_Igatherv at grid.c:27 are not counted",)
    for at, (p, (rows, columns)) in enumerate(shapes.items()):
        given = {"argv1": 12, "P": p, "rank": 0} | {name: each[at] for name, each in found.values.items()}
        assert (given["dims_0"], given["dims_1"]) == (rows, columns)
        sent = (rows - 1) * columns + p
        assert evaluate_exactly(found.means["messages"], given) == Fraction(sent, p)
        moved = (rows - 1) * columns * 12 * 8 + p * (12 // rows) * 8
        assert evaluate_exactly(found.means["bytes"], given) == Fraction(moved, p)
        assert evaluate_exactly(found.totals["fp_add"], given) == 12 // rows * (12 // columns)


#: Bytes of all data of programs; None where they are in containers whose sizes are not followed, or come and go.
DATA = [
    ("nests.c", lambda n, m: 8 * n * m), ("band.c", lambda n, w: 8 * n * (w + 1)),
    ("modules.f90", lambda n, _: 8 * n * (n + 3) + 32 * (n + 3)), ("accessors.c", lambda n, _: 16 * n * n + 40),
    ("grids.cpp", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "size_B"), DATA, ids=lambda each: each if isinstance(each, str) else "")
def test_bytes_of_all_data_are_added_up(name: str, size_B: Callable[[int, int], int] | None) -> None:
    require_compiler(PROGRAMS / name)
    commands = [["./program", "9", "2"], ["./program", "12", "3"], ["./program", "17", "5"]]
    found = derive_formulas(count_runs([PROGRAMS / name], commands, BUILDS.get(name)))
    assert (found.data is None) == bool(found.unsized) == (size_B is None)
    if size_B is not None:
        given = {"argv1": 20, "argv2": 4, "P": 1, "rank": 0}
        assert evaluate_exactly(found.data, given) == size_B(20, 4)
