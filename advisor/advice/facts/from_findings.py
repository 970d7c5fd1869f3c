"""Facts from findings: observations of plugins on this run and the runs before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from advisor.advice.facts.vocabulary import Compute, Fact, Value
    from advisor.model.records import Finding, Profile


def add_finding_values(facts: Iterable[Fact], findings: Iterable[Finding]) -> tuple[Fact, ...]:
    """Return the facts, each with the number of its finding as its value where that was made; the first one counts."""
    known: dict[tuple[str, str, str], float] = {}
    for finding in findings:
        for measure, value in finding.measures.items():
            known.setdefault((finding.kind, finding.subject, measure), value)
    return tuple(
        replace(fact, compute=_constant_fact(known[fact.finding])) if fact.finding and fact.finding in known else fact
        for fact in facts
    )


def _constant_fact(number: float) -> Compute:
    def compute_constant(profile: Profile, phase: int | None) -> Value | None:
        return number

    return compute_constant
