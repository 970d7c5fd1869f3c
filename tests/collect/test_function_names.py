"""Names of functions: read loosely, and their code found though several are called alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from compiled_programs import compile_program

from advisor.collect.binaries.demangling import strip_parameters
from advisor.collect.binaries.program_code import _judge_by_callers, describe_code
from advisor.model.records import Phase, Processor, Profile, Region

if TYPE_CHECKING:
    from pathlib import Path

OPERATORS = """\
struct Row {
    double value[4];
    Row() { for (double &each : value) each = 1.0; }
    double &operator[](int i) { return value[i]; }
    const double &operator[](int i) const { return value[i]; }
    double operator()(int i) { return value[i]; }
    double operator()(int i, int j) const { return value[i] * value[j]; }
    operator double() const { return value[0]; }
};
Row operator+(const Row &a, double b) { Row sum = a; sum[0] += b; return sum; }
Row operator+(const Row &a, const Row &b) { Row sum = a; sum[0] += b[0]; return sum; }
int main()
{
    Row a, b;
    a[0] = (a + b)(0) + static_cast<const Row &>(b)(0, 1);
    return static_cast<int>(static_cast<double>(a + 1.0)) == 0;
}
"""


def test_operators_are_known_where_several_are_called_like_their_region(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "g++", OPERATORS, "-g", suffix=".cpp")
    names = ("Row::operator[]", "Row::operator()", "Row::operator double", "operator+", "Row::Row")
    seconds = np.array((4.0, 3.0, 2.0, 1.0, 0.5)).reshape(-1, 1, 1)
    profile = Profile(
        program="program",
        run="1",
        reader="perf",
        actual_s=10.5,
        processors=(Processor(0),),
        regions=tuple(Region(name) for name in names),
        phases=(Phase("run", "whole", np.arange(len(names)), {"cpu_s": seconds, "wall_s": seconds}),),
        status={"cpu_s": "estimated", "wall_s": "estimated"},
    )
    found = describe_code(profile, program)
    assert found.counts["code.unoptimized_s"][:, 0].tolist() == [4.0, 3.0, 2.0, 1.0, 0.5]


def test_brief_functions_were_compiled_as_the_code_around_them() -> None:
    seconds = np.array((6.0, 2.0, 1.0)).reshape(-1, 1)

    def judge(unoptimized: float) -> list[float]:
        counts = {"known": seconds.copy(), "unoptimized": np.array(((unoptimized,), (0.0,), (0.0,)))}
        _judge_by_callers(counts, [1])
        return [float(each) for each in counts["unoptimized"][:, 0]]

    assert judge(6.0) == [6.0, 2.0, 0.0]
    assert judge(3.0) == [3.0, 0.0, 0.0], "less than half of the others"


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("std::ostream& std::operator<< <char>(std::ostream&, char const*)", "std::operator<<"),
        ("std::vector<int, A<int> >::operator[](long) const", "std::vector<int, A<int> >::operator[]"),
        ("operator new[](unsigned long)", "operator new[]"),
        ("bool operator==<int>(A<int> const&, A<int> const&)", "operator=="),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
        ("A::operator std::string[abi:cxx11]() const", "A::operator std::string"),
        ("operators::apply(int)", "operators::apply"),
        ("double cooperator<int>(double)", "cooperator<int>"),
        ("void step<double>(double*) [clone .isra.0]", "step<double>"),
        ("double sum<int, A<B C> >(int (*)(int), D<E F>)", "sum<int, A<B C> >"),
        ("(anonymous namespace)::relax<2>(double)", "(anonymous namespace)::relax<2>"),
        (f"void sweep<{'Grid, ' * 10}2>::run(int)", "sweep<...>::run"),
        (f"bool less<{'Grid, ' * 10}2>::operator()<int>(int)", "less<...>::operator()"),
    ],
)
def test_a_bare_name_has_neither_type_nor_arguments(name: str, bare: str) -> None:
    assert strip_parameters(name) == bare
