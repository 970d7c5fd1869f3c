"""Recommendations before they are compared: what names a cause, whom it blames, and what restricting one does."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from advisor.advice import facts, ranking, rules
from advisor.advice.ranking import ceilings, drafts
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis import bounds, gaps
from advisor.model.records import Region

if TYPE_CHECKING:
    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.ranking.drafts import Draft


def ranked(case: str) -> tuple[tuple[Draft, ...], GapBudget]:
    profile = build_profile(load_cases()[case])
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)
    sheet = facts.collect_facts(profile, found, split)
    matches = rules.match_rules(rules.load_default(), sheet)
    return ranking.rank_matches(matches, profile, split).drafts, ceilings.build_gap_budget(sheet, split)


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def test_a_fingerprint_is_the_program_the_gaps_and_the_place() -> None:
    """No number, no line and no phase's ordinal: the same cause has the same fingerprint in the next run."""
    (loop, *_), _ = ranked("skewed-load")
    profile = build_profile(load_cases()["skewed-load"])
    targets = "+".join(sorted(map(str, loop.match.action.targets)))
    (phase,) = profile.phases
    item = loop.recommendation
    place = ("solve", phase.closed_by or "", item.region or "", item.file or "")
    whole = digest(profile.program, targets)
    assert item.fingerprint == (whole if loop.whole else digest(profile.program, targets, *place))


def test_an_action_without_targets_is_known_by_its_number() -> None:
    (draft, *_), _ = ranked("skewed-load")
    action = replace(draft.match.action, targets=())
    profile = build_profile(load_cases()["skewed-load"])
    where: Any = SimpleNamespace(dominant=False)
    found = drafts._compute_fingerprint(profile, replace(draft.match, action=action), where, whole=True)
    assert found == digest(profile.program, action.id)


@pytest.mark.parametrize(("case", "blamed"), [("skewed-load", True), ("small-messages", False), ("late-sender", False)])
def test_processors_are_named_for_uneven_and_serial_work_only(case: str, blamed: bool) -> None:
    (draft, *_), _ = ranked(case)
    assert bool(draft.recommendation.processors) == blamed


@pytest.mark.parametrize(
    ("change", "unfit"),
    [("reductions", {"MPI_Isend"}), ("messages", {"MPI_Bcast"}), ("receive", {"MPI_Bcast"}), ("barriers", set())],
)
def test_calls_of_the_other_kind_are_no_place_for_a_change_of_calls(change: str, unfit: set[str]) -> None:
    profile = build_profile(load_cases()["skewed-load"])
    names = ("MPI_Isend", "MPI_Bcast", "MPI_Wait", "solve")
    profile = replace(profile, regions=tuple(Region(name) for name in names))
    assert drafts._find_unfit_regions(profile, {change: "any"}) == unfit


@pytest.mark.parametrize(
    ("change", "output_s", "chosen"), [("io", 1.0, ["O"]), ("io", 0.0, ["O", "L"]), ("rebalance", 1.0, ["O", "L"])]
)
def test_an_action_on_files_has_its_place_at_calls_on_files(change: str, output_s: float, chosen: list[str]) -> None:
    """Others wait for the ranks that write, and most of that waiting is charged to computation."""
    held = {name: SimpleNamespace(name=name, members=(name,)) for name in ("O", "L")}
    budget: Any = SimpleNamespace(
        gaps=held, find_gap_with=lambda letter: letter, gap_seconds={"O": output_s, "L": 5.0}.__getitem__
    )
    site = SimpleNamespace(gap_span=lambda _: SimpleNamespace(high=1.0))
    outcome = SimpleNamespace(evidence=())
    action = SimpleNamespace(change={change: ""}, targets=("O", "L"))
    main: Any = SimpleNamespace(action=action, site=site, outcome=outcome)
    assert [gap.name for gap in drafts._select_gaps(main, ("O", "L"), budget)] == chosen


def test_what_is_expected_of_a_part_is_no_more_than_that_part() -> None:
    (draft, *_), book = ranked("skewed-load")
    item = draft.recommendation
    most = item.ceiling_s
    promising = replace(draft, recommendation=replace(item, expected_s=3 * most, interval_s=(2 * most, 4 * most)))
    restricted = drafts.restrict_draft(promising, draft.claims, book).recommendation
    assert restricted.expected_s == pytest.approx(most)
    assert restricted.interval_s == (pytest.approx(most * 2 / 3), pytest.approx(most)), "as wide as it was"
    modest = replace(draft, recommendation=replace(item, expected_s=most / 2, interval_s=(most / 4, most / 3)))
    restricted = drafts.restrict_draft(modest, draft.claims, book).recommendation
    assert (restricted.expected_s, restricted.interval_s) == (most / 2, (most / 4, most / 3))


def test_gaps_that_are_not_known_apart_are_shown_by_their_letters() -> None:
    """Of a merged gap the budget has the name of the whole; an item is about the letters that its action aims at."""
    (draft, *_), book = ranked("skewed-load")
    assert all(name in book.gaps for name in draft.recommendation.gaps)
    assert set(draft.recommendation.gaps) <= set(map(str, draft.match.action.targets))


@pytest.mark.parametrize(
    ("targets", "seen", "letters"),
    [
        ((), ("X", "comm.messages"), ("X",)),
        ((), ("comm.messages",), ()),
        (("X", "W"), ("comm.messages",), ("X", "W")),
        (("X", "W"), ("W",), ("W",)),
        (("X", "Y0"), ("X", "X"), ("X",)),
    ],
)
def test_an_item_is_about_the_gaps_that_its_conditions_found(
    targets: tuple[str, ...], seen: tuple[str, ...], letters: tuple[str, ...]
) -> None:
    """``Y0`` has no seconds here."""
    evidence = tuple(SimpleNamespace(fact=name, condition=">= 1 %") for name in seen)
    site = SimpleNamespace(gap_span=lambda name: SimpleNamespace(high=0.0 if name == "Y0" else 1.0))
    match: Any = SimpleNamespace(
        action=SimpleNamespace(targets=targets), site=site, outcome=SimpleNamespace(evidence=evidence)
    )
    assert ceilings.find_gap_letters(match) == letters


@pytest.mark.parametrize(
    ("seconds", "place"),
    [
        ([1.0, 2.0], 1),
        ([1.7, 2.0], 0),
        ([1.5, 2.0], 1),
        ([0.0, 0.0], 0),
        ([-2.0, -1.0], 1),
        ([-1e-17], 0),
        ([-1.05, -1.0], 0),
    ],
)
def test_the_first_of_nearly_equal_sites_is_shown_where_gaps_are_negative_too(seconds: list[float], place: int) -> None:
    assert drafts.find_near_largest(seconds) == place
