"""Advice by simulation of all remedies that could apply: the cause that is there comes first, whatever rules fire."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from native_documents import PROFILES
from stencil_pairs import idle_master, late_senders, pipeline, stencil, wandering

import advisor_simulation
from advisor.advice import facts, ranking, rules
from advisor.advice.ranking import judgement
from advisor.analysis import bounds, gaps
from advisor.extension.host import load_plugins
from advisor.pipeline import Options, advise
from advisor.trace.profile import from_trace
from advisor_simulation.whatif import trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.counterfactuals import Candidate, Counterfactual
    from advisor.advice.ranking import Ranking
    from advisor.trace.events import Trace

BOOK = rules.load_default((), examples=False)


def advised(trace: Trace) -> Ranking:
    profile = from_trace(trace, "sample", "otf2")
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)

    def judge(candidates: Sequence[Candidate]) -> Sequence[Counterfactual | None] | None:
        return advisor_simulation.advisor_counterfactuals(profile, candidates, trace)

    return ranking.rank_matches(
        rules.match_rules(BOOK, facts.collect_facts(profile, found, split)), profile, split, judge=judge
    )


@pytest.mark.parametrize("style", ["blocking", "nonblocking", "sendrecv"])
@pytest.mark.parametrize("imbalance", [0.08, 0.20, 0.45])
@pytest.mark.parametrize("reduces", [False, True])
def test_uneven_work_before_a_halo_exchange_is_balanced(style: str, imbalance: float, reduces: bool) -> None:
    """Balanced, each of 12 steps of 10 ms (1 + imbalance) takes 10 ms (1 + imbalance / 4)."""
    before = stencil(4, imbalance, style, reduces=reduces)
    balanced = stencil(4, 0.0, style, reduces=reduces).time_s.max() + 12 * 0.01 * imbalance / 4
    first = advised(before).recommendations[0]
    assert first.action == "A-28"
    assert first.expected_s == pytest.approx(before.time_s.max() - balanced, rel=0.15)


@pytest.mark.parametrize("style", ["blocking", "nonblocking", "sendrecv"])
def test_even_work_gets_no_advice(style: str) -> None:
    found = advised(stencil(4, 0.0, style, reduces=True))
    assert found.recommendations == ()
    assert {one.action for one in found.dismissed} >= {"A-28", "A-14"}


def test_who_sends_behind_work_that_others_do_afterwards_sends_early() -> None:
    """In each step the odd ranks wait for 4 ms, and do the same work then; 10 of 12 steps are of the phase shown."""
    first = advised(late_senders(4)).recommendations[0]
    assert first.action == "G-4"
    assert first.expected_s == pytest.approx(10 * 0.004, rel=0.05)
    assert "No other rank shows" not in first.why


def test_a_true_pipeline_is_cut_finer() -> None:
    coarse = pipeline(4, 4, 0.04)
    finer = pipeline(4, 16, 0.04)
    first = advised(coarse).recommendations[0]
    assert first.action == "G-6"
    assert first.expected_s == pytest.approx(coarse.time_s.max() - finer.time_s.max(), rel=0.1)


def test_a_master_that_only_waits_gets_a_part_of_the_work() -> None:
    """Three ranks work for 10 ms in each of 12 steps, which four do in 7.5 ms."""
    first = advised(idle_master(4)).recommendations[0]
    assert first.action == "G-106"
    assert first.expected_s == pytest.approx(12 * 0.0025, rel=0.1)


def test_barriers_that_order_nothing_are_dropped() -> None:
    """Each rank is slow in a quarter of the steps: together they have the same to do."""
    before, after = wandering(4, True), wandering(4, False)
    first = advised(before).recommendations[0]
    assert first.action in ("G-13", "A-31", "A-36", "A-38")
    assert first.expected_s == pytest.approx(before.time_s.max() - after.time_s.max(), rel=0.1)
    assert {"G-13", "A-38"} <= {first.action, *first.alternatives}


def test_what_the_budget_of_work_does_not_reach_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With work for a few simulations the one with most to win is still made, and the rest is said to be left over."""
    trace = stencil(4, 0.45, "nonblocking", reduces=True)
    whole = advised(trace)
    monkeypatch.setattr(trial, "LEAST_ROWS", trial.MOST_ROWS // 6)
    small = advised(trace)
    left_out = {one.action for one in small.dismissed if one.gain_s is None}
    assert left_out
    assert all(one.gain_s is not None for one in whole.dismissed)
    assert left_out.isdisjoint(one.action for one in small.recommendations)
    assert small.recommendations


def test_the_load_of_the_machine_changes_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clocks that run away, as on a machine where others take all time, are not looked at."""
    trace = stencil(4, 0.20, "blocking", reduces=True)
    quiet = advised(trace).recommendations
    hours = iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: 3600.0 * next(hours))
    assert advised(trace).recommendations == quiet


def test_changes_are_looked_for_only_where_they_can_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise AssertionError("nobody can simulate a run without events")

    monkeypatch.setattr(judgement, "find_possible", refuse)
    assert advise([PROFILES / "fig4.json"], Options(), load_plugins()).recommendations
