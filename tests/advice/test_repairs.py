"""Intervals of what repairs win: wider than what was calculated, and within what the place costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice import facts, ranking, rules
from advisor.advice.ranking import ceilings
from advisor.advice.ranking.repairs import allow_for_repairs
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis import bounds, gaps
from advisor.model import policy

if TYPE_CHECKING:
    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.ranking.drafts import Draft
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Profile

Basis = Literal["calibration", "simulation", "history"]


def ranked() -> tuple[Profile, Draft, GapBudget]:
    """A run, its first item, and its gaps; some of its code was sampled."""
    made = build_profile(load_cases()["skewed-load"])
    sampled = np.ones((len(made.regions), len(made.processors)))
    profile = replace(made, counts={**made.counts, "code.all_s": sampled})
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)
    sheet = facts.collect_facts(profile, found, split)
    matches = rules.match_rules(rules.load_default(), sheet)
    first = ranking.rank_matches(matches, profile, split).drafts[0]
    return profile, first, ceilings.build_gap_budget(sheet, split)


PROFILE, FIRST, BUDGET = ranked()
#: What its place costs in all.
PLACE_S = ceilings.compute_ceiling(BUDGET, FIRST.claims)


def promise(basis: Basis, low: float, usual: float, high: float, profile: Profile = PROFILE) -> Recommendation:
    """The item with a gain that is so much of its place, allowed for repairs."""
    made = replace(
        FIRST.recommendation,
        basis=basis, expected_s=usual * PLACE_S, interval_s=(low * PLACE_S, high * PLACE_S), ceiling_s=high * PLACE_S,
    )  # fmt: skip
    return allow_for_repairs(replace(FIRST, recommendation=made), profile, BUDGET).recommendation


def interval_of(made: Recommendation) -> tuple[float, float]:
    """The interval of an item that has one."""
    assert made.interval_s is not None
    return made.interval_s


def test_a_repair_of_code_reaches_beyond_its_kind_of_code() -> None:
    made = promise("calibration", 0.1, 0.2, 0.4)
    assert made.interval_s == pytest.approx((0.1 * PLACE_S, policy.REPAIR_REACH * 0.4 * PLACE_S))
    assert made.expected_s == pytest.approx(0.2 * PLACE_S)
    assert made.ceiling_s == interval_of(made)[1]


def test_threads_that_share_work_take_none_away() -> None:
    action = replace(FIRST.match.action, change={"threads": "introduced"})
    made = replace(FIRST.recommendation, basis="calibration", expected_s=0.2, interval_s=(0.1, 0.4), ceiling_s=0.4)
    draft = replace(FIRST, recommendation=made, match=replace(FIRST.match, action=action))
    assert allow_for_repairs(draft, PROFILE, BUDGET) == draft


def test_it_wins_no_more_than_its_place_costs_but_for_what_runs_differ_by() -> None:
    made = promise("calibration", 0.1, 0.5, 1.2)
    assert interval_of(made)[1] == pytest.approx(
        min((1 + policy.REPAIR_SPREAD) * 1.2, 1.2 * policy.REPAIR_REACH) * PLACE_S
    )


def test_what_was_simulated_comes_out_a_little_otherwise() -> None:
    made = promise("simulation", 0.5, 0.5, 0.5)
    spread = policy.REPAIR_SPREAD
    assert made.interval_s == pytest.approx(((1 - spread) * 0.5 * PLACE_S, (1 + spread) * 0.5 * PLACE_S))
    assert promise("simulation", 0.0, 0.5, 0.9).interval_s == pytest.approx((0.0, 0.9 * PLACE_S))


@pytest.mark.parametrize("basis", ["calibration", "simulation"])
def test_runs_without_code_promise_what_was_calculated(basis: Basis) -> None:
    bare = replace(PROFILE, counts={})
    assert promise(basis, 0.1, 0.2, 0.4, bare).interval_s == pytest.approx((0.1 * PLACE_S, 0.4 * PLACE_S))


def test_what_was_won_before_stays_as_it_was() -> None:
    assert promise("history", 0.1, 0.2, 0.4).interval_s == pytest.approx((0.1 * PLACE_S, 0.4 * PLACE_S))


@given(
    basis=st.sampled_from(["calibration", "simulation"]),
    parts=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).map(sorted),
)
def test_an_interval_only_grows_and_holds_its_gain(basis: Basis, parts: list[float]) -> None:
    low, usual, high = parts
    made = promise(basis, low, usual, high)
    assert made.expected_s is not None
    assert interval_of(made)[0] <= low * PLACE_S + 1e-12
    assert interval_of(made)[1] >= high * PLACE_S - 1e-12
    assert interval_of(made)[0] <= made.expected_s + 1e-12
    assert made.expected_s <= interval_of(made)[1] + 1e-12
    assert interval_of(made)[1] <= made.ceiling_s + 1e-12
