from __future__ import annotations

import argparse
from dataclasses import replace

import advice_samples as samples
import pytest

from advisor.cli import gates
from advisor.errors import GateCrossed, UsageError


@pytest.mark.parametrize(
    "text",
    ["L > 3 %", "L>3%", " L  >=  0.17 ", "L > 7.9 s", "L >= 8 s", "L > 100 ms", "L <= 8 s", "L < 1 min", "M' > 0 s"],
)
def test_gates_that_are_crossed(text: str) -> None:
    with pytest.raises(GateCrossed):
        gates.judge([gates.parse(text)], samples.full())


@pytest.mark.parametrize("text", ["L > 17.1 %", "L > 8 s", "L < 3 %", "O > 0 s", "X > 0 %", "S' >= 1 %"])
def test_gates_that_hold(text: str) -> None:
    gates.judge([gates.parse(text)], samples.full())


def test_the_reason_names_every_crossed_gate() -> None:
    with pytest.raises(GateCrossed) as crossed:
        gates.judge([gates.parse(text) for text in ("L > 3 %", "O > 1 s", "M' >= 4 s")], samples.full())
    assert str(crossed.value) == (
        "L is 8.00 s, 17.0 % of the run; the gate is L > 3 %; M' is 4.00 s, 8.5 % of the run; the gate is M' >= 4 s"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("L", "expected a condition"),
        ("L = 3 %", "expected a condition"),
        ("> 3 %", "expected a condition"),
        ("L > ", "expected a condition"),
        ("Q > 3 %", "no gap 'Q'"),
        ("M'+Q > 3 %", "no gap 'Q'"),
        ("L > 3 apples", "expected a time"),
        ("L > 3", "a share without %"),
        ("L > nan", "expected a time"),
    ],
)
def test_what_is_no_gate(text: str, problem: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=problem):
        gates.parse(text)


def test_a_merged_gap_is_a_gate_of_its_own() -> None:
    with pytest.raises(GateCrossed, match=r"M'\+D\+S'\+W\+X is 5.80 s"):
        gates.judge([gates.parse("M'+D+S'+W+X > 12 %")], samples.without_phases())


def test_a_part_of_a_merged_gap_is_not_above_it() -> None:
    gates.judge([gates.parse("D > 6 s")], samples.without_phases())
    with pytest.raises(GateCrossed):
        gates.judge([gates.parse("D < 6 s")], samples.without_phases())


@pytest.mark.parametrize("text", ["D > 5 s", "D < 5 s"])
def test_what_cannot_be_told_apart_is_said(text: str) -> None:
    with pytest.raises(UsageError, match=r"can't be told apart .*the profile has no phases"):
        gates.judge([gates.parse(text)], samples.without_phases())


def test_a_gap_that_the_run_does_not_show_is_said() -> None:
    with pytest.raises(UsageError, match="does not show the gap C"):
        gates.judge([gates.parse("C > 3 %")], replace(samples.full()))
