"""Which of several items about the same seconds stays, as which, and what all of them win together."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from advisor.advice import facts, ranking, rules
from advisor.advice.ranking import order
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis import bounds, gaps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.advice.ranking.drafts import Claim, Draft

RUN: Any = SimpleNamespace(actual_s=100.0, is_simulated=False, counts={}, outside={})


@cache
def sample() -> Draft:
    profile = build_profile(load_cases()["skewed-load"])
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)
    matches = rules.match_rules(rules.load_default(), facts.collect_facts(profile, found, split))
    return ranking.rank_matches(matches, profile, split).drafts[0]


def draft(action: str, claims: tuple[Claim, ...], site: int) -> Draft:
    """A draft about seconds of the gap X at some sites, shown at one of them."""
    one = sample()
    place = SITES[site].place
    match = replace(
        one.match, action=replace(one.match.action, id=action, gain=None), site=replace(one.match.site, place=place)
    )
    item = replace(one.recommendation, action=action, gaps=("X",), alternatives=(), expected_s=None)
    return replace(one, match=match, claims=claims, recommendation=item, further_s=None)


SITES = [
    replace(sample().match.site, place=replace(sample().match.site.place, phases=(number,), name=f"phase {number}"))
    for number in range(3)
]


def budget(seconds: Mapping[int, float]) -> Any:  # noqa: ANN401
    """The gap X with so many seconds at each site."""
    return SimpleNamespace(
        sheet=SimpleNamespace(sites=SITES, loads=None), gaps={}, grade=None, noise_s=0.0,
        gap_seconds=lambda _: sum(seconds.values()),
        part_seconds=lambda _, site: seconds.get(site, 0.0),
        imbalance_s=lambda _: 0.0,
        find_gap_with=lambda letter: letter,
    )  # fmt: skip


def select(seconds: Mapping[int, float], shown_at: int = 1) -> list[Draft]:
    """A better item about site 0, and one about sites 0 and 1."""
    better = draft("A-1", ((0, "X"),), 0)
    other = draft("A-2", ((0, "X"), (1, "X")), shown_at)
    return order._select_one_per_cause([better, other], RUN, budget(seconds))


@pytest.mark.parametrize("rest", [10.0, 30.0])
def test_an_item_with_at_least_half_of_its_seconds_to_itself_stays_with_those(rest: float) -> None:
    first, second = select({0: 10.0, 1: rest})
    assert (first.claims, second.claims) == (((0, "X"),), ((1, "X"),))
    assert first.recommendation.alternatives == ()
    assert second.recommendation.ceiling_s == rest


@pytest.mark.parametrize(
    ("seconds", "shown_at"),
    [
        ({0: 10.0, 1: 9.9}, 1),  # most of it is taken
        ({0: 0.4, 1: 0.5}, 1),  # what is left is too small to matter in a run of 100 s
        ({0: 10.0, 1: 30.0}, 0),  # it would be shown where everything is taken
    ],
)
def test_an_item_about_what_a_better_one_wins_is_its_alternative(seconds: dict[int, float], shown_at: int) -> None:
    (only,) = select(seconds, shown_at)
    assert only.recommendation.alternatives == ("A-2",)


def test_an_alternative_goes_to_the_item_that_has_most_of_its_seconds() -> None:
    items = [draft("A-1", ((0, "X"),), 0), draft("A-2", ((1, "X"),), 1), draft("A-3", ((0, "X"), (1, "X")), 0)]
    first, second = order._select_one_per_cause(items, RUN, budget({0: 5.0, 1: 8.0}))
    assert (first.recommendation.alternatives, second.recommendation.alternatives) == ((), ("A-3",))
    first, second = order._select_one_per_cause(items, RUN, budget({0: 5.0, 1: 5.0}))
    assert (first.recommendation.alternatives, second.recommendation.alternatives) == (("A-3",), ())


def test_no_action_is_an_alternative_of_itself_or_twice() -> None:
    items = [draft("A-1", ((0, "X"),), 0), *(draft(action, ((0, "X"),), 0) for action in ("A-1", "A-2", "A-2"))]
    (only,) = order._select_one_per_cause(items, RUN, budget({0: 5.0}))
    assert only.recommendation.alternatives == ("A-2",)


def test_an_item_at_no_site_has_no_place_that_could_be_taken() -> None:
    outside = draft("A-2", ((-1, "X"),), 0)
    assert not order._is_place_taken(outside, {(0, "X")}, budget({}))
    both = replace(outside, claims=((0, "X"), (0, "W"), (1, "X")))
    assert not order._is_place_taken(both, {(0, "X")}, budget({}))
    assert order._is_place_taken(both, {(0, "X"), (0, "W")}, budget({}))


def test_of_items_with_one_fingerprint_the_first_by_phase_and_action_keeps_it() -> None:
    made = [draft(action, (), site) for action, site in (("A-2", 0), ("A-1", 0), ("A-1", 1))]
    made = [
        replace(one, recommendation=replace(one.recommendation, fingerprint="same", phase=phase))
        for one, phase in zip(made, ("a", "a", "b"), strict=True)
    ]
    found = order._number_recommendations(made)
    assert [one.fingerprint == "same" for one in found] == [False, True, False]
    assert len({one.fingerprint for one in found}) == 3
    assert [one.rank for one in found] == [1, 2, 3]


def gap(name: str, seconds: float) -> Any:  # noqa: ANN401
    return SimpleNamespace(name=name, seconds=seconds)


@pytest.mark.parametrize(
    ("names", "seconds"),
    [(("P",), 1 + 2 + 4), (("W",), 4.0), (("P", "W"), 1 + 2 + 4), (("other",), 100.0), (("P", "other"), 100.0)],
)
def test_nothing_below_the_lowest_bound_of_its_gaps_can_be_won(names: tuple[str, ...], seconds: float) -> None:
    split = [gap("P", 1.0), gap("X", 2.0), gap("W", 4.0)]
    assert order._seconds_above_lowest([(0, name) for name in names], split, RUN) == seconds


def test_negative_gaps_win_nothing() -> None:
    assert order._seconds_above_lowest([(0, "W")], [gap("P", 5.0), gap("W", -2.0)], RUN) == 0.0
