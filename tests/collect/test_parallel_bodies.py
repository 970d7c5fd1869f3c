"""Whose code a region is: of parallel bodies, inlined functions, libraries; integers that wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.elf_files import read_elf
from advisor.collect.binaries.hot_functions import analyze_function
from advisor.collect.binaries.program_code import describe_code
from advisor.model.records import Phase, Processor, Profile, Region
from advisor.support.outlined_functions import is_outlined, name_parallel_body

if TYPE_CHECKING:
    from pathlib import Path

SUMS = """\
double congruential(int n, unsigned long seed)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        sum += (seed >> 40) / 16777216.0;
    }
    return sum;
}
double shifted(int n, unsigned long seed)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        sum += (double)(seed >> 12);
    }
    return sum;
}
double squares(int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)(i * i ^ 5);
    return sum;
}
double stepping(int n, const double *x, long stride)
{
    double sum = 0;
    for (long i = 0, at = 0; i < n; i++, at = at + stride + 3)
        sum += x[at];
    return sum;
}
double masked(int n, const double *x)
{
    double sum = 0;
    for (unsigned i = 0, at = 0; i < (unsigned)n; i++, at = (at + 1) & 1023)
        sum += x[at];
    return sum;
}
int main(int argc, char **argv)
{
    static double x[5000];
    return (int)(congruential(argc, 1) + shifted(argc, 2) + squares(argc) + stepping(argc, x, 2) + masked(argc, x));
}
"""

BODIES = """\
#include <omp.h>
#include <stdio.h>
static volatile long counters[64];
int main(void)
{
#pragma omp parallel
    {
        const int me = omp_get_thread_num();
        for (long i = me; i < 1000; i += 2)
            counters[me] = counters[me] + ((i & 7) == 1);
    }
    printf("%ld\\n", counters[0] + counters[1]);
    return 0;
}
"""


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sums")
    return compile_program(folder, "gcc", SUMS, "-O2", "-g", "-fno-inline", "-fno-tree-vectorize")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("congruential", "recurrence"),
        ("shifted", "recurrence"),
        ("squares", "order"),
        ("stepping", "order"),
        ("masked", "index"),
    ],
)
def test_a_sum_of_numbers_that_wait_for_each_other_is_not_held_up_by_its_order(
    sums: Path, name: str, reason: str
) -> None:
    image = read_elf(sums)
    symbol = next(one for one in image.functions if one.name == name)
    (loop,) = analyze_function(image, symbol, None).loops
    assert loop.scalar_reason == reason


def test_the_code_of_a_parallel_region_is_that_of_its_body(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "gcc", BODIES, "-O2", "-g", "-fopenmp")
    line = 1 + BODIES.splitlines().index("#pragma omp parallel")
    arrays = {"cpu_s": np.ones((1, 2, 1)), "wall_s": np.ones((1, 2, 1))}
    source = next(tmp_path.glob("*.c")).name
    profile = Profile(
        program="program",
        run="1",
        reader="recording",
        actual_s=1.0,
        processors=(Processor(0), Processor(0, 1)),
        regions=(Region("omp parallel", source, line, threaded=True),),
        phases=(Phase("run", "whole", np.arange(1), arrays),),
        status={"cpu_s": "measured", "wall_s": "measured"},
    )
    counts = describe_code(profile, program).counts
    assert counts["code.update_s"].tolist() == [[1.0, 1.0]]


MATH = """\
#include <math.h>
#include <stdio.h>
static inline __attribute__((always_inline)) double norm(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}
double table(int n, const double *x)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] * 1.5;
        if (sum > 1e9)
            sum -= pow(x[i], 0.75);
    }
    return sum;
}
int main(int argc, char **argv)
{
    double x[64] = {argc};
    printf("%g %g\\n", table(argc, x), norm(x, argc));
    return 0;
}
"""


def counted(tmp_path: Path, seconds: dict[tuple[str, str], float]) -> dict[str, list[float]]:
    """Return the counts of regions, each with its seconds and the beginning of the line that it has."""
    program = compile_program(tmp_path, "gcc", MATH, "-O2", "-g", "-fno-tree-vectorize", "-fno-inline-functions")
    source = next(tmp_path.glob("*.c")).name
    lines = {text: number for number, text in enumerate(MATH.splitlines(), 1)}
    found = {start: next(lines[text] for text in lines if text.strip().startswith(start)) for _, start in seconds}
    computed = np.array(list(seconds.values())).reshape(-1, 1, 1)
    profile = Profile(
        program="program",
        run="1",
        reader="recording",
        actual_s=1.0,
        processors=(Processor(0),),
        regions=tuple(Region(name, source, found[start]) for name, start in seconds),
        phases=(Phase("run", "whole", np.arange(len(seconds)), {"cpu_s": computed, "wall_s": computed}),),
        status={"cpu_s": "measured", "wall_s": "measured"},
    )
    return {name: table[:, 0].tolist() for name, table in describe_code(profile, program).counts.items()}


def test_a_function_of_a_library_is_not_the_code_that_calls_it(tmp_path: Path) -> None:
    counts = counted(tmp_path, {("norm", "sum += x[i] * x[i]"): 1.0, ("deflate", 'printf("%g'): 2.0})
    assert counts["code.known_s"] == [1.0, 0.0]


@pytest.mark.parametrize(("pow_s", "least", "most"), [(0.0, 0.0, 0.0), (0.25, 0.25, 0.25), (3.0, 0.5, 1.0)])
def test_loops_that_call_functions_count_as_far_as_these_were_seen(
    tmp_path: Path, pow_s: float, least: float, most: float
) -> None:
    counts = counted(tmp_path, {("table", "sum += x[i] * 1.5"): 1.0, ("pow", "sum -= pow"): pow_s})
    loop_s, library_s = counts["code.math_s"]
    assert library_s == pytest.approx(pow_s)
    assert least - 1e-9 <= loop_s <= most + 1e-9
    assert counts["code.call_s"] == [0.0, 0.0], "calls of mathematical functions can't be inlined"


NAMED = """\
#include <stdexcept>
#include <cstdio>
#include <omp.h>
__attribute__((noinline)) double solve(const double *x, long n, long step)
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        sum += x[i * step];
        if (sum < 0)
            throw std::runtime_error("negative");
    }
    return sum;
}
__attribute__((noinline)) double solve(const double *x) { return solve(x, 64, 8); }
double columns(const double *x, long n)
{
    double total = 0;
#pragma omp parallel for reduction(+ : total)
    for (long j = 0; j < n; j++)
        for (long i = 0; i < n; i++)
            total += x[i * n + j];
    return total;
}
int main(int argc, char **argv)
{
    static double x[4096];
    x[argc] = argc;
    printf("%g %g\\n", solve(x), columns(x, 60 + argc));
}
"""


@pytest.mark.parametrize(("name", "share"), [("solve", "code.order_s"), ("columns._omp_fn.0", "code.strided_s")])
def test_functions_of_several_parts_are_known_without_lines(tmp_path: Path, name: str, share: str) -> None:
    """The name fits an overload and what is seldom run, or a parallel body, which has only its function's name."""
    program = compile_program(tmp_path, "g++", NAMED, "-O2", "-fopenmp", "-fno-tree-vectorize")
    computed = np.ones((1, 1, 1))
    profile = Profile(
        program="program",
        run="1",
        reader="recording",
        actual_s=1.0,
        processors=(Processor(0),),
        regions=(Region(name),),
        phases=(Phase("run", "whole", np.arange(1), {"cpu_s": computed, "wall_s": computed}),),
        status={"cpu_s": "measured", "wall_s": "measured"},
    )
    counts = describe_code(profile, program).counts
    assert counts["code.known_s"].tolist() == [[1.0]]
    assert counts[share].item() > 0.5


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("main._omp_fn.2", "main._omp_fn.2"),
        ("solve(double*, int) [clone ._omp_fn.0]", "solve._omp_fn.0"),
        ("solve.omp_outlined", "solve.omp_outlined"),
        (".omp_outlined._debug__.4", ".omp_outlined._debug__.4"),
    ],
)
def test_bodies_of_parallel_regions_are_called_by_their_function(name: str, bare: str) -> None:
    assert is_outlined(name)
    assert name_parallel_body(name) == bare


def test_other_functions_keep_their_names() -> None:
    assert name_parallel_body("solve(double*, int) [clone .cold]") == "solve(double*, int) [clone .cold]"
    assert not is_outlined("outlined")
