from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from counted_sources import EXAMPLES, NEEDS_GCC
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S

from advisor.model.errors import UsageError
from advisor_processor.source import c_source, instrumented_run, model, symbols
from advisor_processor.source.essential_accesses import count_essential_accesses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor_processor.source.records import Source
NEEDS_FORTRAN = pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran: apt install gfortran")
NEEDS_VALGRIND = pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind: apt install valgrind")


def source(code: str, language: str = "c") -> Source:
    text = code.encode()
    return c_source.analyse_c_source(text, "x.c", instrumented_run.parse_source(text, language), language)


def loop_body(statement: str, declarations: str = "double *a, double *b, double *c, double s, int n") -> Source:
    return source(f"void f({declarations})\n{{ for (int i = 0; i < n; i++) {{ {statement} }} }}")


@pytest.mark.parametrize(
    ("macros", "statement", "operations"),
    [
        ("#define AT(x, k) x[(k) + 1]", "AT(a, i) = AT(b, i) + s * AT(c, i);", {"fp_fma": 1}),
        ("#define AT(x, k) x[k]\n#define B(k) AT(b, k)", "a[i] += B(i) * B(i + 1);", {"fp_fma": 1}),
        ("#define SQUARE(x) ((x) * (x))", "a[i] = SQUARE(b[i]) - s;", {"fp_fma": 1}),
        ("#define HERE(x) THERE(x)\n#define THERE(x) HERE(x)", "a[i] = HERE(b[i]) + s;", {"fp_add": 1}),
        (
            "#define NAME(x) x##_1\n#define DO(x) do { x; } while (0)",
            "a[i] = b[i] + s; DO(n++); NAME(a);",
            {"fp_add": 1},
        ),
    ],
)
def test_calls_of_macros_count_as_what_they_stand_for(macros: str, statement: str, operations: dict[str, int]) -> None:
    head = "void f(double *a, double *b, double *c, double s, int n)"
    found = source(f"{macros}\n{head} {{ for (int i = 0; i < n; i++) {{ {statement} }} }}")
    block = next(each for each in found.blocks if each.loop is not None)
    assert {unit: times for unit, times in block.work.operations.items() if times} == operations


@pytest.mark.parametrize(
    ("statement", "operations", "memory"),
    [
        ("a[i] = b[i] + s * c[i];", {"fp_fma": 1}, (2, 1)),
        ("a[i] = b[i] + s * c[i] + s * b[i];", {"fp_fma": 2}, (2, 1)),
        ("a[i] += b[i];", {"fp_add": 1}, (2, 1)),
        ("s += a[i] * b[i];", {"fp_fma": 1}, (2, 0)),
        ("a[i] = b[i] / s;", {"fp_div": 1}, (1, 1)),
        ("a[i] = sqrt(b[i]) - 1.0;", {"fp_div": 1, "fp_add": 1}, (1, 1)),
        ("a[i] = 0.25 * (b[i-1] + b[i+1] + c[i]);", {"fp_add": 2, "fp_mul": 1}, (2, 1)),
        ("a[i] = 0.5 * (a[i-1] + a[i+1]);", {"fp_add": 1, "fp_mul": 1}, (1, 1)),
        ("a[n] += b[i];", {"fp_add": 1}, (1, 0)),
        ("a[i] = b[i]; c[i] = a[i];", {}, (1, 2)),
        ("int k = i * 2 + 1; a[k] = b[2 * i];", {}, (1, 1)),
        ("double *p = &a[i]; *p = -b[i];", {}, (1, 1)),
    ],
)
def test_operations_of_one_iteration(statement: str, operations: dict[str, int], memory: tuple[int, int]) -> None:
    (loop,) = loop_body(statement).loops
    assert loop.body is not None
    assert {unit: times for unit, times in loop.body.work.operations.items() if times} == operations
    assert count_essential_accesses(loop.body)[:2] == memory


def test_integers_are_no_floating_point_operations() -> None:
    (loop,) = loop_body("n2[i] = n2[i] * 3 + i;", "long *n2, int n").loops
    assert loop.body is not None
    assert loop.body.work.operations == {}
    assert [each.floating for each in loop.body.work.references] == [False, False]


@pytest.mark.parametrize(
    ("control", "trips"),
    [
        ("int i = 0; i < n; i++", "n"), ("int i = 1; i <= n; ++i", "n"), ("int i = n; i > 0; i--", "n"),
        ("int i = n - 1; i >= 0; i -= 1", "n"), ("int i = 0; n > i; i = i + 1", "n"),
        ("int i = 0; i < n; i += 4", "ceiling(n/4)"), ("int i = 2; i != n; i++", "n - 2"),
        ("int i = 0; i < n; i *= 2", None), ("int i = f(n); i < n; i++", None), ("; ;", None),
        ("int i = 0; i < n && s > 0; i++", None), ("long i = 0; i < (long)g->n; i++", "g.n"),
    ],
)  # fmt: skip
def test_how_often_a_loop_repeats_as_an_expression(control: str, trips: str | None) -> None:
    (loop,) = source(f"int f(int); void h(int n, double s) {{ for ({control}) s += 1.0; }}").loops
    found = symbols.trip_expression(loop)
    assert (None if found is None else str(found)) == trips


@given(st.text("ijkn+-*/() 012", max_size=30))
def test_any_text_is_an_expression_or_none(text: str) -> None:
    found = symbols.parse_expression(text)
    assert found is None or hasattr(found, "free_symbols")


def test_counters_keep_the_lines_of_the_source() -> None:
    code = "int f(int n)\n{\n    int s = 0;\n    for (int i = 0; i < n; i++)\n        s += i;\n    return s;\n}\n"
    found = source(code)
    text = instrumented_run.instrument_source(code.encode(), found, 0).decode()
    body = text[text.index('#line 1 "x.c"\n') + len('#line 1 "x.c"\n') :]
    assert body.count("\n") == code.count("\n")
    assert re.sub(r" ?GAPWATCH_(COUNT|VALUE)_\d+\([^)]*\);", "", body).replace("{  s", "{ s").split() == (
        code.replace("        s += i;", "        { s += i; }").split()
    )


def test_what_is_not_understood_is_said() -> None:
    assert source("void f( { ] }").problems
    with pytest.raises(UsageError, match="C, C\\+\\+ and free-form Fortran"):
        instrumented_run.detect_language(Path("x.rs"))


FLOPS = {"fp_add": 1, "fp_mul": 1, "fp_fma": 2, "fp_div": 1}
#: Executions counted by hand: of the innermost loop, and floating-point operations in all, of N.
BY_HAND = {
    "gauss": (
        "eliminate:10",
        lambda n: (n - 1) * n * (n + 1) // 3,
        lambda n: 2 * (n - 1) * n * (n + 1) // 3 + n * (n - 1) // 2,
    ),
    "matmul": ("multiply:10", lambda n: n**3, lambda n: 2 * n**3),
}  # fmt: skip


@NEEDS_GCC
@pytest.mark.parametrize("name", sorted(BY_HAND))
@pytest.mark.parametrize("n", [1, 2, 17])
def test_counts_are_those_found_by_hand(name: str, n: int) -> None:
    innermost, iterations, operations = BY_HAND[name]
    found = model.build_model(
        instrumented_run.count_executions([EXAMPLES / f"{name}.c"], [f"./{name}", str(n)], root=EXAMPLES)
    )
    loops = {loop.loop.name: loop for loop in found.loops}
    assert sum(loops[innermost].iterations) == iterations(n)
    assert all(loop.exact for loop in found.loops)
    kernel = [loop for loop in found.loops if loop.loop.function != "main"]
    assert sum(flops(loop.totals) for loop in kernel) == operations(n)


@NEEDS_GCC
def test_loops_until_convergence_keep_a_symbol_for_what_only_a_run_tells() -> None:
    found = model.build_model(instrumented_run.count_executions([EXAMPLES / "cg.c"], ["./cg", "8"], root=EXAMPLES))
    loops = {loop.loop.name: loop for loop in found.loops}
    (turns,) = loops["main:61"].iterations
    assert found.parameters == {"m": 64, "n": 8}
    assert loops["dot:9"].expression == "2*iterations_61*m + m"
    assert sum(loops["dot:9"].iterations) == 2 * turns * 64 + 64
    nonzeros = 5 * 64 - 4 * 8
    assert sum(loops["multiply:18"].iterations) == nonzeros * turns
    assert all(loop.exact is not False for loop in found.loops)
    ratios = {one.block.line: one.ratio for one in found.blocks if one.block.function == "laplacian" and one.ratio}
    assert ratios == dict.fromkeys((39, 41, 43, 45), 7 / 8)


def flops(totals: Mapping[str, float]) -> float:
    return sum(totals.get(unit, 0) * each for unit, each in FLOPS.items())


@NEEDS_GCC
@pytest.mark.parametrize("n", [3, 10])
def test_a_stencil_and_conjugate_gradients_are_those_found_by_hand(n: int) -> None:
    """Per point four additions and one multiplication; of five values in a row, each from the row above and below one.

    Per turn of CG: the matrix, two inner products, two updates, and one more with a division; before, one product.
    """
    stencil = model.build_model(
        instrumented_run.count_executions([EXAMPLES / "stencil.c"], ["./stencil", str(n)], root=EXAMPLES)
    )
    loops = {loop.loop.name: loop for loop in stencil.loops}
    points = sum(loops["main:25"].iterations) * (n - 2) ** 2
    per_point = {"fp_add": 4, "fp_mul": 1, "load": 3, "store": 1}
    assert loops["sweep:10"].totals == {unit: each * points for unit, each in per_point.items()}
    cg = model.build_model(instrumented_run.count_executions([EXAMPLES / "cg.c"], ["./cg", str(n)], root=EXAMPLES))
    turns = sum({loop.loop.name: loop for loop in cg.loops}["main:61"].iterations)
    rows, nonzeros = n * n, 5 * n * n - 4 * n
    expected = turns * (2 * nonzeros + 2 * 2 * rows + 2 * 2 * rows + 3 * rows + 1) + 2 * rows
    assert sum(flops(loop.totals) for loop in cg.loops) == expected


SENDING = """
#include <stdlib.h>
static void MPI_Send(const double *values, int count, int type) { (void)values; (void)count; (void)type; }
static void rows(int n, const double *a)
{
    for (int k = 0; k < n; k++) {
        MPI_Send(a + k, n - k, 8);
        if (a[k] > 0)
            MPI_Send(a, 2 * n, 8);
    }
}
int main(int count, char **words)
{
    int n = atoi(words[count - 1]);
    double *a = calloc(n, sizeof *a);
    for (int turn = 0; turn < 3; turn++)
        rows(n, a);
    free(a);
    return 0;
}
"""


@NEEDS_GCC
def test_arguments_of_calls_are_summed_over_the_loops_around(tmp_path: Path) -> None:
    (tmp_path / "sending.c").write_text(SENDING)
    found = instrumented_run.count_executions([tmp_path / "sending.c"], ["./sending", "10"], root=tmp_path)
    calls = [(one.executions, call) for one in model.build_model(found).blocks for call in one.calls]
    sends = {call.arguments[1]: (executed, call.means) for executed, call in calls if call.name == "MPI_Send"}
    assert sends["n - k"] == ((30,), (None, 5.5, 8.0)), "10, 9 … 1 in each of three turns"
    assert sends["2 * n"] == ((0,), (None, 20.0, 8.0)), "a branch, but nothing that changes"


@NEEDS_GCC
@NEEDS_VALGRIND
def test_counts_agree_with_instructions_that_callgrind_counts(tmp_path: Path) -> None:
    """At -O1 gcc keeps each source loop: its instructions at the line of the body run as often as counted."""
    for name, line, iterations in (("matmul", 11, 12**3), ("gauss", 11, 11 * 12 * 13 // 3)):
        program, out = tmp_path / name, tmp_path / f"{name}.out"
        build = ["gcc", "-O1", "-g", str(EXAMPLES / f"{name}.c"), "-o", str(program), "-lm"]
        subprocess.run(build, check=True, timeout=PATIENCE_S)
        words = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}", str(program), "12"]
        subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE_S)
        from advisor_processor.compiled import binary, executions

        counts = executions.read_executions(out)[0].instruction_counts(str(program))
        where = binary.read_binary(program)
        assert {count for address, count in counts.items() if (where.find_line(address) or ("", 0))[1] == line} == {
            iterations
        }


@NEEDS_FORTRAN
def test_fortran_is_counted_alike() -> None:
    found = model.build_model(
        instrumented_run.count_executions([EXAMPLES / "matmul.f90"], ["./matmul", "9"], root=EXAMPLES)
    )
    loops = {loop.loop.name: loop for loop in found.loops}
    assert sum(loops["program:22"].iterations) == 9**3
    assert loops["program:22"].expression == "n**3"
    assert loops["program:22"].totals == {"fp_fma": 9**3, "load": 2 * 9**3, "store": 9**3}
    assert all(loop.exact for loop in found.loops)
