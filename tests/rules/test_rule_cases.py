"""The cases are runs that could have been recorded, every example comes true, and the examples are sharp."""

from __future__ import annotations

import numpy as np
import pytest
from mutate_rules import mutants, name_of, scaled, swapped, text_of

from advisor.advice import rules
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import build_case_sheet, load_cases, run_examples
from advisor.analysis import bounds, gaps, soundness
from advisor.model.records import GAP_NAMES

BOOK = rules.load_default()
CASES = sorted(load_cases())


@pytest.mark.parametrize("action", BOOK.actions, ids=lambda action: action.id)
def test_examples_come_true(action: rules.book.Action) -> None:
    results = run_examples(BOOK, only=[action.id])
    assert len(results) == len(action.examples) >= 2
    assert [(r.example.case, r.example.override, r.outcome) for r in results if not r.has_passed] == []


@pytest.mark.parametrize("name", CASES)
def test_case_is_a_sound_profile(name: str) -> None:
    profile = build_profile(load_cases()[name])
    soundness.check_profile(profile)
    assert load_cases()[name].about.endswith(".")
    spent = sum(phase.arrays["wall_s"].sum(axis=(0, 2)) for phase in profile.phases if "wall_s" in phase.arrays)
    outside = sum(profile.outside.values())
    if load_cases()[name].knows != "work":
        assert spent + outside == pytest.approx(np.full(len(profile.processors), profile.actual_s))


@pytest.mark.parametrize("name", CASES)
def test_gaps_of_a_case_close_and_are_not_negative(name: str) -> None:
    profile = build_profile(load_cases()[name])
    found = bounds.compute_bounds(profile)
    known = [bound.seconds for bound in found if bound.seconds is not None]
    seconds = [gap.seconds for gap in gaps.attribute_gaps(profile, found)]
    assert known[0] + sum(seconds) == pytest.approx(profile.actual_s)
    assert min(seconds) >= -1e-9


@pytest.mark.parametrize("name", CASES)
def test_causes_of_a_case_explain_its_seconds(name: str) -> None:
    profile = build_profile(load_cases()[name])
    if profile.causes is None:
        return
    for number, category in enumerate(("transfer", "wait", "sync", "io")):
        rows = profile.causes.category == number
        measured = sum(float(phase.arrays[f"{category}_s"].sum()) for phase in profile.phases)
        assert float(profile.causes.seconds[rows].sum()) == pytest.approx(measured)


def test_every_case_is_used() -> None:
    assert {example.case for action in BOOK.actions for example in action.examples} == set(CASES)


def test_figures_of_the_source_have_their_bounds() -> None:
    expected = {"fig4": (41, 42, 46, 47), "fig5": (40, 40, 40, 60)}
    for name, seconds in expected.items():
        values = {bound.name: bound.seconds for bound in bounds.compute_bounds(build_profile(load_cases()[name]))}
        assert tuple(values[bound] for bound in ("IPCO", "IPCOL", "IPCOLM", "IPCOLMD")) == seconds


def test_given_values_stand_at_every_site() -> None:
    sheet = build_case_sheet("false-sharing")
    for site in (sheet.run, *sheet.sites):
        assert site.values["processor.false_sharing_share"] == pytest.approx(0.12)
        assert site.gap_span("C").low == site.gap_span("C").high == pytest.approx(0.01 * site.run_s)
    assert set(sheet.run.spans) == set(GAP_NAMES)


def test_changed_rules_are_noticed() -> None:
    """Nine in ten changes of a comparison, and every comparison by one change at least, make an example fail."""
    tried = list(mutants(BOOK.actions))
    surviving = [mutant for mutant in tried if mutant.survives]
    noticed = {mutant.leaf.mark for mutant in tried} - {mutant.leaf.mark for mutant in surviving}
    noticed |= {mutant.leaf.mark for mutant in tried if mutant not in surviving}
    assert sorted({mutant.leaf.mark for mutant in tried} - noticed) == []
    assert len(surviving) <= 0.1 * len(tried), "\n".join(mutant.words for mutant in surviving)


def test_a_mutant_differs_in_one_comparison() -> None:
    action = next(action for action in BOOK.actions if action.id == "A-28")
    leaf = action.comparisons[1]
    other = scaled(leaf, 1.2)
    assert other is not None
    changed = tuple(rules.conditions.iterate_comparisons(swapped(action.when, leaf, other)))
    differing = [(a, b) for a, b in zip(action.comparisons, changed, strict=True) if a != b]
    assert [(name_of(a), name_of(b)) for a, b in differing] == [(name_of(leaf), name_of(leaf))]
    assert text_of(differing[0][1]) != text_of(leaf)
