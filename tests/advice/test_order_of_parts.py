"""Items about explained parts of gaps, what is worth showing, and what all items win together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from advisor.advice import facts, ranking, rules
from advisor.advice.ranking import explained_drafts, order
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis import bounds, gaps
from advisor.model.gap_parts import GapPart

if TYPE_CHECKING:
    from advisor.advice.ranking.drafts import Draft


@cache
def sample() -> Draft:
    profile = build_profile(load_cases()["skewed-load"])
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)
    matches = rules.match_rules(rules.load_default(), facts.collect_facts(profile, found, split))
    return ranking.rank_matches(matches, profile, split).drafts[0]


def part_draft(action: str, cause: str, ceiling_s: float, low_s: float, expected_s: float, high_s: float) -> Draft:
    """A draft about a part of the gap X, with what a simulation expects of it."""
    one = sample()
    match = replace(one.match, action=replace(one.match.action, id=action))
    item = replace(
        one.recommendation, action=action, alternatives=(), ceiling_s=ceiling_s, expected_s=expected_s,
        interval_s=(low_s, high_s), basis="simulation",
    )  # fmt: skip
    part = GapPart("X", cause, ceiling_s, "measured")
    return replace(one, match=match, claims=((0, "X"),), recommendation=item, part=part, further_s=None)


def run(devices: object = None) -> Any:  # noqa: ANN401
    return SimpleNamespace(actual_s=100.0, is_simulated=False, devices=devices, counts={}, outside={})


def test_actions_about_one_part_are_alternatives_and_those_about_two_are_two() -> None:
    drafts = [
        part_draft(action, cause, 5.0, 1.0, 2.0, 3.0) for action, cause in (("A-1", "a"), ("A-2", "a"), ("A-3", "b"))
    ]
    first, second = order._select_one_per_cause(drafts, run(), SimpleNamespace())  # type: ignore[arg-type]
    assert (first.recommendation.action, first.recommendation.alternatives) == ("A-1", ("A-2",))
    assert (second.recommendation.action, second.recommendation.alternatives) == ("A-3", ())


@pytest.mark.parametrize(("devices", "expected_s", "shown"), [(None, 0.5, True), ((), 0.5, False), ((), 1.5, True)])
def test_a_simulated_change_is_shown_by_its_interval_and_that_of_a_device_by_its_mean(
    devices: object, expected_s: float, shown: bool
) -> None:
    assert order._is_worth_it(part_draft("A-1", "a", 5.0, 0.0, expected_s, 4.0), run(devices)) is shown


def test_what_a_change_won_elsewhere_is_a_share_of_its_seconds_here() -> None:
    one = part_draft("A-1", "a", 8.0, 0.0, 0.0, 0.0)
    calibration: Any = SimpleNamespace(wins=(0.125, 0.5, 0.75))
    one = replace(one, match=replace(one.match, action=replace(one.match.action, gain=calibration)))
    found = order._calibrated_gain(one)
    assert found
    assert (found.low_s, found.expected_s, found.high_s) == (1.0, 4.0, 6.0)


def test_parts_are_added_up_and_at_least_the_surest_of_them_is_won() -> None:
    """The total is at least what the best item wins at least, and at most what all win at most."""
    drafts = [part_draft("A-1", "a", 3.0, 1.0, 2.0, 2.5), part_draft("A-2", "b", 5.0, 2.0, 3.0, 4.0)]
    nothing: Any = SimpleNamespace(
        sheet=SimpleNamespace(sites=()), gap_seconds=lambda _: 0.0, imbalance_s=lambda _: 0.0
    )
    gap: Any = SimpleNamespace(name="X", seconds=20.0)
    total = order._compute_total(drafts, [gap], run(), nothing)
    assert (total.ceiling_s, total.expected_s, total.interval_s) == (8.0, 5.0, (2.0, 6.5))


@pytest.mark.parametrize(("guess_s", "first"), [(2.0, "A-2"), (8.0, "A-1")])
def test_what_is_expected_stands_before_guesses_that_usually_win_less(guess_s: float, first: str) -> None:
    """Half of the ceiling of 2 s is less than the 2 s of A-2, whatever the effort; half of 8 s is not."""
    guess, known = (part_draft(action, "a", 8.0, 1.0, 2.0, 3.0) for action in ("A-1", "A-2"))
    action = replace(guess.match.action, typical_fraction=0.5)
    item = replace(
        guess.recommendation, ceiling_s=guess_s, expected_s=None, interval_s=None, basis=None, confidence=1.0
    )
    guess = replace(guess, match=replace(guess.match, action=action), recommendation=item)
    known = replace(known, recommendation=replace(known.recommendation, basis="calibration", confidence=1.0))
    assert explained_drafts.put_known_first([guess, known])[0].recommendation.action == first
