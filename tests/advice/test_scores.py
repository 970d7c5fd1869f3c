"""What the confidence and the score of a recommendation are made of, and which comes first."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from ranked_cases import draft

from advisor.advice import rules
from advisor.advice.ranking import ceilings, judgement

if TYPE_CHECKING:
    from advisor.advice.ranking.drafts import Draft


@pytest.mark.parametrize(("span", "members", "certainty"), [((1, 1), 1, 1.0), ((0, 1), 1, 0.5), ((1, 1), 2, 0.5)])
def test_a_gap_of_which_only_a_limit_is_known_counts_half(
    span: tuple[float, float], members: int, certainty: float
) -> None:
    gap = SimpleNamespace(members=("X",) * members, status="measured")
    site: Any = SimpleNamespace(gap_span=lambda _: SimpleNamespace(low=span[0], high=span[1]))
    match: Any = SimpleNamespace(site=site, outcome=SimpleNamespace(surety=1.0))
    book: Any = SimpleNamespace(gaps={"X": gap}, grade=None, noise_s=0.0)
    assert ceilings.compute_confidence(book, match, ["X"], 1.0) == certainty


def test_confidence_is_the_product_of_its_parts() -> None:
    site: Any = SimpleNamespace(gap_span=lambda _: SimpleNamespace(low=1.0, high=1.0))
    match: Any = SimpleNamespace(site=site, outcome=SimpleNamespace(surety=0.75))
    gaps_of = {
        name: SimpleNamespace(members=(name,), status=status)
        for name, status in zip("XY", ("measured", "estimated"), strict=True)
    }
    book: Any = SimpleNamespace(gaps=gaps_of, grade=SimpleNamespace(score=0.9), noise_s=1.0)
    assert ceilings.compute_confidence(book, match, ["X", "Y"], 3.0) == round(0.8 * 0.9 * 0.75 * 3 / 4, 3)
    book.noise_s = 0.0
    assert ceilings.compute_confidence(book, match, ["X"], 3.0) == round(0.9 * 0.75, 3)


def test_the_score_is_usual_seconds_times_confidence_over_effort() -> None:
    assert draft().score == pytest.approx(2.0)


def changed(**more: object) -> Draft:
    one = draft()
    action = {name: more.pop(name) for name in ("typical_fraction",) if name in more}
    match = replace(one.match, action=replace(one.match.action, **action))
    return replace(one, match=match, recommendation=replace(one.recommendation, **more))


@pytest.mark.parametrize(
    ("better", "score"),
    [
        ({"ceiling_s": 11.0}, 2.2),
        ({"typical_fraction": 0.6}, 2.4),
        ({"confidence": 0.9}, 2.25),
        ({"effort": 1}, 4.0),
        ({"expected_s": 5.5, "basis": "history"}, 2.2),
        ({"expected_s": 5.5, "basis": "similar"}, 2.2),
        ({"expected_s": 5.5, "basis": "calibration"}, 2.2),
    ],
)
def test_each_part_of_the_score_decides(better: dict[str, object], score: float) -> None:
    one = changed(**better)
    assert one.score == pytest.approx(score)
    assert sorted([draft(), one], key=lambda each: each.sort_key) == [one, draft()]


def test_what_a_simulation_promises_counts_by_what_is_usual() -> None:
    assert changed(expected_s=5.5, basis="simulation").score == pytest.approx(1.1)


def test_what_no_simulation_could_try_counts_half() -> None:
    assert judgement._usual_s(draft()) == pytest.approx(10.0 * 0.5 * 0.8 / 2)


def test_of_equal_scores_the_more_specific_one_comes_first_then_the_lower_number() -> None:
    actions = sorted(rules.load_default().actions, key=lambda action: len(action.comparisons))
    made = []
    for name, action in (("A-10", actions[0]), ("A-9", actions[0]), ("A-20", actions[-1])):
        one = changed()
        action = replace(action, id=name, typical_fraction=0.5)
        made.append(replace(one, match=replace(one.match, action=action)))
    assert [each.match.action.id for each in sorted(made, key=lambda each: each.sort_key)] == ["A-20", "A-9", "A-10"]
