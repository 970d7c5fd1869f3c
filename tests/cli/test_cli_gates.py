from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

import advice_samples as samples
import pytest

from advisor.advice.earlier_runs import find_base, require_base
from advisor.cli import gates
from advisor.model.errors import GateCrossed, UsageError

if TYPE_CHECKING:
    from advisor.model.records import Advice


def no_base() -> None:
    """Nothing to compare with."""


@pytest.mark.parametrize(
    "text",
    ["L > 3 %", "L>3%", " L  >=  0.17 ", "L > 7.9 s", "L >= 8 s", "L > 100 ms", "L <= 8 s", "L < 1 min", "M' > 0 s"],
)
def test_gates_that_are_crossed(text: str) -> None:
    with pytest.raises(GateCrossed):
        gates.check_gates([gates.parse_gate(text)], samples.full(), no_base)


@pytest.mark.parametrize("text", ["L > 17.1 %", "L > 8 s", "L < 3 %", "O > 0 s", "X > 0 %", "S' >= 1 %"])
def test_gates_that_hold(text: str) -> None:
    gates.check_gates([gates.parse_gate(text)], samples.full(), no_base)


def test_the_reason_names_every_crossed_gate() -> None:
    with pytest.raises(GateCrossed) as crossed:
        gates.check_gates(
            [gates.parse_gate(text) for text in ("L > 3 %", "O > 1 s", "M' >= 4 s")], samples.full(), no_base
        )
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
        gates.parse_gate(text)


def test_a_merged_gap_is_a_gate_of_its_own() -> None:
    with pytest.raises(GateCrossed, match=r"M'\+D\+S'\+W\+X is 5.80 s"):
        gates.check_gates([gates.parse_gate("M'+D+S'+W+X > 12 %")], samples.without_phases(), no_base)


def test_a_part_of_a_merged_gap_is_not_above_it() -> None:
    gates.check_gates([gates.parse_gate("D > 6 s")], samples.without_phases(), no_base)
    with pytest.raises(GateCrossed):
        gates.check_gates([gates.parse_gate("D < 6 s")], samples.without_phases(), no_base)


@pytest.mark.parametrize("text", ["D > 5 s", "D < 5 s"])
def test_what_cannot_be_told_apart_is_said(text: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be separated .*the profile has no phases"):
        gates.check_gates([gates.parse_gate(text)], samples.without_phases(), no_base)


def test_a_gap_that_the_run_does_not_show_is_said() -> None:
    with pytest.raises(UsageError, match="does not show the gap C"):
        gates.check_gates([gates.parse_gate("C > 3 %")], replace(samples.full()), no_base)


# What changed since the base build


def build(name: str, *items: str, slower_s: float = 0.0) -> Advice:
    """The sample as of a build, with these items of advice and more load imbalance."""
    advice = samples.full()
    place = [bound.name for bound in advice.bounds].index("IPCOL")
    levels = tuple(
        replace(one, seconds=one.seconds + slower_s) if at >= place and one.seconds is not None else one
        for at, one in enumerate(advice.bounds)
    )
    made = tuple(replace(samples.recommendation(), fingerprint=item) for item in items)
    return replace(advice, profile=replace(advice.profile, build=name), bounds=levels, recommendations=made)


def judge(gate: str, now: Advice, *earlier: Advice) -> None:
    gates.check_gates([gates.parse_gate(gate)], now, lambda: find_base(now, earlier))


def test_new_is_what_no_run_of_the_base_shows() -> None:
    judge("new", build("v2", "a", "b"), build("v1", "a"), build("v1", "b"))
    judge("new", build("v2", "a"), build("v1", "a", "b"))
    with pytest.raises(GateCrossed) as crossed:
        judge("new", build("v3", "a", "b"), build("v1", "b"), build("v2", "a"))
    assert str(crossed.value).startswith("Self-scheduling [A-29] at void solver::Grid<double, 3>::exchange_halo")
    assert str(crossed.value).endswith("at most 4.00 s, is new since build v2")


def test_regression_is_what_repeats_do_not_explain() -> None:
    steady = [build("v1", slower_s=0.01 * repeat) for repeat in range(4)]
    judge("regression", build("v2", slower_s=0.02), *steady)
    judge("regression", build("v2", slower_s=-2.0), *steady)
    with pytest.raises(GateCrossed, match=r"^L grew by 1.9\d s since build v1; the noise of that is 14.4 ms$"):
        judge("regression", build("v2", slower_s=2.0), *steady)


@pytest.mark.parametrize(("gate", "earlier"), [("new", ()), ("regression", (build("v2"),)), ("network", ())])
def test_the_first_build_has_no_verdict(gate: str, earlier: tuple[Advice, ...]) -> None:
    with pytest.raises(UsageError) as unjudged:
        judge(gate, build("v2", "a", slower_s=9.0), *earlier)
    assert str(unjudged.value) == f"gate '{gate}' cannot be judged: no earlier run of another build is known"


def test_runs_of_no_named_build_are_told_how_to_name_it() -> None:
    unnamed = replace(build("v1"), profile=replace(build("v1").profile, build=None))
    with pytest.raises(UsageError, match=r"is known; name the builds: gapwatch stamp DIR --build NAME$"):
        judge("new", unnamed)


@pytest.mark.parametrize(
    ("gate", "earlier", "why"),
    [
        ("regression", (build("v1"),), "neither v2 nor another build was run twice, so the noise is unknown"),
        ("network", (build("v1"),), "not all runs of the two builds were traced on as many ranks"),
        ("new", (replace(samples.insufficient(), profile=build("v1").profile),), "no advice on build v1"),
    ],
)
def test_a_gate_that_cannot_be_judged_is_an_error(
    gate: str, earlier: tuple[Advice, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = build("v2", "a", slower_s=9.0)
    with pytest.raises(UsageError, match=why) as unjudged:
        judge(gate, now, *earlier)
    assert str(unjudged.value).startswith(f"gate '{gate}' cannot be judged: ")
    with pytest.raises(GateCrossed, match="L is"):
        gates.check_gates(
            [gates.parse_gate(gate), gates.parse_gate("L > 0.001 %")], now, lambda: find_base(now, earlier)
        )
    assert "cannot be judged" in capsys.readouterr().err, "what is crossed goes first, the other is said"


def test_runs_on_another_number_of_ranks_are_no_base() -> None:
    other = build("v1")
    fewer = replace(other, profile=replace(other.profile, processors=other.profile.processors[:2]))
    assert find_base(build("v2"), [fewer]) is None
    assert find_base(build("v2"), [fewer, other]) is not None


def test_a_base_that_was_run_otherwise_is_named_with_the_difference() -> None:
    now, other = build("v2"), build("v1")
    stated = {"command": "./heat 8"}
    now = replace(now, profile=replace(now.profile, parameters=stated))
    elsewhere = replace(other, profile=replace(other.profile, parameters={"command": "./heat 9"}))
    with pytest.raises(UsageError, match=r"build v1 was not run like this one \(command: \./heat 9, not \./heat 8\)"):
        gates.check_gates([gates.parse_gate("new")], now, lambda: require_base(now, [elsewhere]))
    alike = replace(other, profile=replace(other.profile, parameters=stated))
    assert require_base(now, [elsewhere, alike]) is not None
    assert require_base(now, [replace(alike, profile=replace(alike.profile, build=None))]) is None
