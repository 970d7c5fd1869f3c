"""A change of the build is about all phases of a program; other changes of the whole program lead at one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from advisor.advice import facts, rules
from advisor.advice.ranking import ceilings, drafts
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import load_cases
from advisor.analysis import bounds, gaps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.advice.ranking.drafts import Draft


def build_drafts(change: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Draft], set[str]]:
    """Return drafts of an action at both phases, at the first and at the second; and where the first is placed."""
    profile = build_profile(load_cases()["multiphase"])
    found = bounds.compute_bounds(profile)
    split = gaps.attribute_gaps(profile, found)
    sheet = facts.collect_facts(profile, found, split)
    matches = rules.match_rules(rules.load_default(), sheet)
    fired = [match for match in matches.fired if match.action.id == "A-35"]
    assert [match.site.place and match.site.place.phases for match in fired] == [(0,), (1,)]
    changed = [replace(match, action=replace(match.action, change=dict(change))) for match in fired]
    budget = ceilings.build_gap_budget(sheet, split)
    asked: list[set[str]] = []
    find_spot: Any = vars(drafts)["find_spot"]

    def record_phases(held: Any, phases: Any, without: Any) -> Any:  # noqa: ANN401
        asked.append(set(phases))
        return find_spot(held, phases, without)

    monkeypatch.setattr(drafts, "find_spot", record_phases)
    groups = (changed, changed[:1], changed[1:])
    made = [drafts._build_draft(matches, group, ("M'",), profile, budget, ()) for group in groups]
    return made, asked[0]


def test_a_change_of_the_build_is_placed_in_all_phases_and_wins_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    (both, *single), phases = build_drafts({"cpu": "optimized"}, monkeypatch)
    assert len(phases) == 2
    assert both.recommendation.ceiling_s == pytest.approx(sum(one.recommendation.ceiling_s for one in single))


def test_another_change_of_the_program_is_placed_where_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    (both, *_), phases = build_drafts({"rebalance": "ranks"}, monkeypatch)
    place = both.match.site.place
    assert place
    assert phases == {place.name}
