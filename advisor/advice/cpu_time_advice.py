"""Changes of the computation of a run of which only CPU times are known, with what they win at most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from advisor.advice import facts, ranking, rules
from advisor.analysis import bounds, gaps, loads
from advisor.analysis.cpu_time import count_as_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.advice.facts import Fact
    from advisor.advice.ranking import Ranking
    from advisor.advice.rules import RuleBook, RuleMatches
    from advisor.analysis.machines import Machine
    from advisor.model.records import Grade, Profile

#: What computation alone is about: it is known without the length of a run.
_COMPUTATION: Final = frozenset({"M", "A", "C", "S", "$"})


def rank_by_cpu_time(
    profile: Profile,
    grade: Grade,
    machine: Machine | None,
    book: RuleBook,
    extra: Sequence[Fact],
    order: Literal["seconds", "steps"],
) -> tuple[RuleMatches, Ranking, tuple[str, ...]]:
    """Return the rules on computation that apply, what comes of them, and problems with facts."""
    counted = count_as_times(profile)
    summary = loads.summarize_loads(counted)
    levels = bounds.compute_bounds(counted, machine, summary)
    found = gaps.attribute_gaps(counted, levels, summary, machine)
    sheet = facts.collect_facts(counted, levels, found, machine, summary, extra)
    matches = rules.match_rules(book, sheet)
    fired = tuple(match for match in matches.fired if _COMPUTATION.issuperset(match.action.targets))
    matches = replace(matches, fired=fired)
    return matches, ranking.rank_matches(matches, counted, found, order=order, grade=grade), sheet.problems
