"""Ranking of any run: promises stay below gaps, and neither order nor noise chooses."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_strategies import profiles

from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis.loads import summarize_loads
from advisor.model import policy

if TYPE_CHECKING:
    from advisor.advice.ranking import Ranking
    from advisor.advice.rules.case_records import CasePhase
    from advisor.model.records import Profile

from ranked_cases import BOOK, find_gaps, first_item_of, keep_rules, rank_case, rank_profile, two_skewed_phases


def assert_sound(profile: Profile, result: Ranking) -> None:
    """Promises hold: none above its gaps, none twice, and all together below the time above the lowest bound."""
    known = {gap.name: gap.seconds for gap in find_gaps(profile)}
    for item in result.recommendations:
        held = sum(max(known[name], 0.0) for name in item.gaps) if set(item.gaps) <= set(known) else profile.actual_s
        assert 0 < item.ceiling_s <= held * (1 + 1e-9) + 1e-12
        assert 0 <= item.confidence <= 1
        assert item.action not in item.alternatives
        assert result.total.ceiling_s >= item.ceiling_s * (1 - 1e-9)
    total = sum(item.ceiling_s for item in result.recommendations)
    assert result.total.ceiling_s <= total * (1 + 1e-9) + 1e-12
    assert result.total.ceiling_s <= profile.actual_s * (1 + 1e-9)
    assert [item.rank for item in result.recommendations] == list(range(1, len(result.recommendations) + 1))
    for phase in {item.phase for item in result.recommendations}:
        claimed = [name for item in result.recommendations if item.phase == phase for name in item.gaps]
        assert len(set(claimed)) == len(claimed), "two items for the same seconds"
    prints = [item.fingerprint for item in result.recommendations]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("case", sorted(load_cases()))
def test_promises_of_the_cases_hold(case: str) -> None:
    assert_sound(build_profile(load_cases()[case]), rank_case(case))


@cache
def _traced_phases() -> list[CasePhase]:
    return [
        phase for case in load_cases().values() if case.ranks == 4 and case.knows == "trace" for phase in case.phases
    ]


def mix_run(chosen: list[tuple[int, int]]) -> Profile:
    """Return a run of phases of the cases, each by its number and with so many iterations."""
    named = tuple(
        replace(_traced_phases()[index], name=f"{_traced_phases()[index].name} {n}", iterations=iterations)
        for n, (index, iterations) in enumerate(chosen)
    )
    return build_profile(replace(load_cases()["clean"], phases=named))


def mixed_runs() -> st.SearchStrategy[Profile]:
    """Runs of several phases of the cases, with other numbers of iterations, in any order."""
    entry = st.tuples(st.integers(0, len(_traced_phases()) - 1), st.integers(1, 12))
    return st.lists(entry, min_size=1, max_size=4).map(mix_run)


@settings(deadline=None, max_examples=60)
@given(mixed_runs())
def test_promises_hold(profile: Profile) -> None:
    result = rank_profile(profile)
    assert_sound(profile, result)
    assert {item.action for item in rank_profile(profile, order="steps").recommendations} <= {
        item.action for item in result.recommendations
    }


@settings(deadline=None, max_examples=60)
@given(profiles())
def test_no_profile_is_too_strange_to_rank(profile: Profile) -> None:
    result = rank_profile(profile)
    assert all(np.isfinite(item.ceiling_s) for item in result.recommendations)
    assert np.isfinite(result.total.ceiling_s)


def comparable(result: Ranking) -> list[tuple[object, ...]]:
    return [
        (item.action, item.gaps, item.phase, round(item.ceiling_s, 6), item.fingerprint, item.alternatives)
        for item in result.recommendations
    ]


@settings(deadline=None, max_examples=40)
@given(mixed_runs(), st.randoms(use_true_random=False))
def test_the_order_of_rules_changes_nothing(profile: Profile, random: object) -> None:
    shuffled = list(BOOK.actions)
    random.shuffle(shuffled)
    assert comparable(rank_profile(profile, replace(BOOK, actions=tuple(shuffled)))) == comparable(
        rank_profile(profile)
    )


@settings(deadline=None, max_examples=40)
@given(mixed_runs(), st.randoms(use_true_random=False))
def test_the_order_of_phases_changes_nothing(profile: Profile, random: object) -> None:
    """Up to ties, which go to the earlier phase."""
    order = random.sample(range(len(profile.phases)), len(profile.phases))
    places = np.argsort(order)
    assert profile.causes is not None
    causes = replace(profile.causes, phase=places[profile.causes.phase])
    moved = replace(profile, phases=tuple(profile.phases[p] for p in order), causes=causes)
    mine, other = rank_profile(profile), rank_profile(moved)
    assert mine.total.ceiling_s == pytest.approx(other.total.ceiling_s)
    assert sorted(item.gaps for item in mine.recommendations) == sorted(item.gaps for item in other.recommendations)
    uneven = sorted(load.steady_s + load.dynamic_s for load in summarize_loads(profile).phases)
    if all(less < policy.NEAR_EQUAL * more for less, more in pairwise(uneven) if more > 0):
        assert [item.action for item in mine.recommendations] == [item.action for item in other.recommendations]


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(sorted(name for name, case in load_cases().items() if not case.device_seconds)),
    st.floats(0.95, 1.05),
)
def test_fingerprints_survive_faster_and_slower_runs(case: str, factor: float) -> None:
    profile = build_profile(load_cases()[case])
    phases = tuple(
        replace(
            phase,
            arrays={name: array * factor for name, array in phase.arrays.items()},
            duration_s=None if phase.duration_s is None else phase.duration_s * factor,
            start_s=None if phase.start_s is None else phase.start_s * factor,
        )
        for phase in profile.phases
    )
    causes = profile.causes and replace(profile.causes, seconds=profile.causes.seconds * factor)
    outside = {name: array * factor for name, array in profile.outside.items()}
    scaled = replace(profile, phases=phases, causes=causes, outside=outside, actual_s=profile.actual_s * factor)
    mine, other = rank_profile(profile).recommendations, rank_profile(scaled).recommendations
    assert [item.fingerprint for item in mine] == [item.fingerprint for item in other]


@pytest.mark.parametrize(("factor", "first"), [(0.95, "solve"), (1.05, "solve"), (1.2, "solve"), (2.0, "update")])
def test_noise_does_not_choose_between_phases_that_are_alike(factor: float, first: str) -> None:
    profile = two_skewed_phases()
    one, two = profile.phases
    louder = replace(two, arrays={name: array * factor for name, array in two.arrays.items()})
    items = rank_profile(replace(profile, phases=(one, louder)), keep_rules("A-29")).recommendations
    assert [item.phase for item in items] == [first, *({"solve", "update"} - {first})]
    assert [item.rank for item in items] == [1, 2]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(("skewed-load", "serial-part", "small-messages", "io-all", "multiphase")), st.data())
def test_fingerprints_survive_noise(case: str, data: st.DataObject) -> None:
    """Every value of the work changes by up to 5 %, each by another amount."""
    written = load_cases()[case]
    noise = st.floats(0.95, 1.05)
    phases = tuple(
        replace(
            phase,
            work_s=tuple(
                tuple(s * data.draw(noise) for s in (row * (4 // len(row)))) for row in phase.work_s for _ in range(3)
            ),
        )
        for phase in written.phases
    )
    noisy = rank_profile(build_profile(replace(written, phases=phases))).recommendations
    assert noisy[0].fingerprint == first_item_of(case).fingerprint


def test_fingerprints_do_not_depend_on_lines() -> None:
    profile = build_profile(load_cases()["small-messages"])
    moved = replace(profile, regions=tuple(replace(r, line=(r.line or 0) + 7) for r in profile.regions))
    assert [i.fingerprint for i in rank_profile(moved).recommendations] == [
        i.fingerprint for i in rank_profile(profile).recommendations
    ]
    renamed = replace(profile, program="other")
    assert rank_profile(renamed).recommendations[0].fingerprint != rank_profile(profile).recommendations[0].fingerprint


def test_what_two_items_win_is_not_more_than_their_sum() -> None:
    """A serial part, uneven work that is even over all, and a load that moves: found by the test of all promises."""
    pool = [
        phase for case in load_cases().values() if case.ranks == 4 and case.knows == "trace" for phase in case.phases
    ]
    by_name = {phase.name: phase for phase in pool}
    chosen = (by_name["prepare"], load_cases()["critical-phase"].phases[0], load_cases()["drifting-load"].phases[0])
    named = tuple(replace(phase, name=f"{phase.name} {n}", iterations=5) for n, phase in enumerate(chosen))
    profile = build_profile(replace(load_cases()["clean"], phases=named))
    assert_sound(profile, rank_profile(profile))
