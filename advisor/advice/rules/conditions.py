"""The grammar of a rule's ``when``, and its three-valued truth.

    all: [...]  any: [...]  not: ...            conditions of conditions
    {gap: L, share: ">= 3 %"}                   seconds of a gap at the site / run time
    {gap: L, seconds: ">= 10 s"}                seconds of a gap at the site
    {fact: phase.imbalance, is: ">= 1.10"}      a fact of the vocabulary: a number in its unit
    {fact: run.has_openmp, is: true}            a truth value
    {fact: phase.closed_by, is: MPI_Barrier}    a name, also "!= MPI_Barrier"

What is unknown makes a condition unknown unless the rest decides (Kleene's logic): ``all`` is false as soon as one part
is, ``any`` true as soon as one part is. Conditions are data, read by ``advisor.support.documents``; nothing is ever
executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from advisor.advice.facts.fact_records import DIMENSIONS, Fact, Unit, Value
from advisor.advice.rules.comparisons import ThresholdComparison, format_comparison, parse_comparison
from advisor.advice.rules.names import FactName, GapName, current_names
from advisor.model.recommendations import Evidence, Need
from advisor.support.documents import FieldErrors, Mark

if TYPE_CHECKING:
    from advisor.advice.facts.source import GapSpan


class SiteFacts(Protocol):
    """The input of conditions: the facts and gaps at one site."""

    @property
    def run_s(self) -> float:
        """The run time, seconds."""

    def find_fact(self, name: str) -> tuple[Fact, Value | None, Need]:
        """The fact of that name, its value here if known, and what would provide it."""

    def gap_span(self, name: str) -> GapSpan:
        """The seconds of a gap here."""


@dataclass(frozen=True, slots=True)
class FactIs:
    """A fact compared with a threshold."""

    fact: FactName
    is_: str
    mark: Mark

    def __post_init__(self) -> None:
        try:
            parse_comparison(self.is_, current_names().facts[self.fact].unit)
        except ValueError as error:
            raise FieldErrors([(("is",), f"{self.fact}: found '{self.is_}', {error}")]) from None


@dataclass(frozen=True, slots=True)
class GapShare:
    """The seconds of a gap as a share of the run time."""

    gap: GapName
    share: str
    mark: Mark

    def __post_init__(self) -> None:
        _check_comparison(("share",), self.share, "share")


@dataclass(frozen=True, slots=True)
class GapSeconds:
    """The seconds of a gap."""

    gap: GapName
    seconds: str
    mark: Mark

    def __post_init__(self) -> None:
        _check_comparison(("seconds",), self.seconds, "s")


def _check_comparison(path: tuple[str, ...], text: str, unit: Unit) -> None:
    try:
        parse_comparison(text, unit)
    except ValueError as error:
        raise FieldErrors([(path, f"{path[0]}: found '{text}', {error}")]) from None


@dataclass(frozen=True, slots=True)
class AllOf:
    """True if every part is."""

    all: tuple[When, ...]
    mark: Mark

    def __post_init__(self) -> None:
        if not self.all:
            raise FieldErrors([(("all",), "expected at least one condition")])


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True if a part is."""

    any: tuple[When, ...]
    mark: Mark

    def __post_init__(self) -> None:
        if not self.any:
            raise FieldErrors([(("any",), "expected at least one condition")])


@dataclass(frozen=True, slots=True)
class Not:
    """True if the part is false."""

    not_: When
    mark: Mark


Leaf = FactIs | GapShare | GapSeconds
When = AllOf | AnyOf | Not | FactIs | GapShare | GapSeconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """The truth of a condition (None: unknown), what made it so, what was missing, and how clear it is (0.5 to 1)."""

    truth: bool | None
    evidence: tuple[Evidence, ...] = ()
    needs: tuple[Need, ...] = ()
    surety: float = 1.0


def iterate_comparisons(when: When) -> Iterator[Leaf]:
    """Yield the comparisons that a condition is built from, in the order in which they are written."""
    if isinstance(when, Not):
        yield from iterate_comparisons(when.not_)
    elif isinstance(when, AllOf | AnyOf):
        for part in when.all if isinstance(when, AllOf) else when.any:
            yield from iterate_comparisons(part)
    else:
        yield when


def evaluate_condition(when: When, place: SiteFacts) -> Outcome:
    """Return the truth of ``when`` at ``place``, with the comparisons and missing facts that decide it."""
    if isinstance(when, AllOf):
        return _join_outcomes([evaluate_condition(part, place) for part in when.all], deciding=False)
    if isinstance(when, AnyOf):
        return _join_outcomes([evaluate_condition(part, place) for part in when.any], deciding=True)
    if isinstance(when, Not):
        outcome = evaluate_condition(when.not_, place)
        truth = None if outcome.truth is None else not outcome.truth
        evidence = tuple(replace(piece, condition=f"not {piece.condition}") for piece in outcome.evidence)
        return Outcome(truth, evidence, outcome.needs, outcome.surety)
    if isinstance(when, FactIs):
        return _evaluate_fact(when, place)
    return _evaluate_gap(when, place)


def compute_truth(when: When, place: SiteFacts) -> bool | None:
    """Return the truth of ``when`` at ``place`` as ``evaluate_condition`` does, but without the reason (for speed)."""
    if isinstance(when, FactIs):
        fact, value, _ = place.find_fact(when.fact)
        return None if value is None else parse_comparison(when.is_, fact.unit).is_met(value)
    if isinstance(when, AllOf):
        return _combine_truths(when.all, place, deciding=False)
    if isinstance(when, AnyOf):
        return _combine_truths(when.any, place, deciding=True)
    if isinstance(when, Not):
        inner = compute_truth(when.not_, place)
        return None if inner is None else not inner
    test, low, high, _ = _gap_limits(when, place)
    return test.is_met_between(low, high)


def _combine_truths(parts: tuple[When, ...], place: SiteFacts, *, deciding: bool) -> bool | None:
    """Return whether ``any`` (true decides) or ``all`` (false decides) of ``parts`` hold, no further than needed."""
    found: bool | None = not deciding
    for part in parts:
        one = compute_truth(part, place)
        if one is deciding:
            return one
        if one is None:
            found = None
    return found


def _join_outcomes(parts: list[Outcome], *, deciding: bool) -> Outcome:
    """Return ``any`` (true decides) or ``all`` (false decides) of ``parts``."""
    decided = [part for part in parts if part.truth is deciding]
    unknown = [part for part in parts if part.truth is None]
    if decided:
        evidence = tuple(piece for part in decided for piece in part.evidence)
        return Outcome(deciding, evidence, (), max(part.surety for part in decided))
    if unknown:
        needs = dict.fromkeys(need for part in unknown for need in part.needs)
        return Outcome(None, (), tuple(needs))
    evidence = tuple(piece for part in parts for piece in part.evidence)
    return Outcome(not deciding, evidence, (), min(part.surety for part in parts))


def _evaluate_fact(when: FactIs, place: SiteFacts) -> Outcome:
    fact, value, need = place.find_fact(when.fact)
    if value is None:
        return Outcome(None, needs=(need,))
    test = parse_comparison(when.is_, fact.unit)
    unit = fact.unit if fact.unit in DIMENSIONS else ""
    evidence = Evidence(fact.name, value, unit, format_comparison(test, when.is_), fact.formula)
    return Outcome(test.is_met(value), (evidence,), (), _compute_clearness(test, fact, value))


def _compute_clearness(test: ThresholdComparison, fact: Fact, value: Value) -> float:
    """Return how clear a comparison is; whole numbers and what is known of the run are exact, ratios begin at 1."""
    whole = fact.unit == "count" and isinstance(value, float) and value.is_integer()
    exact = whole or (fact.scope == "run" and fact.unit in ("count", "ratio"))
    return 1.0 if exact else test.compute_margin(value, 1.0 if fact.unit == "ratio" else 0.0)


def _gap_limits(when: GapShare | GapSeconds, place: SiteFacts) -> tuple[ThresholdComparison, float, float, GapSpan]:
    """Return what a gap is compared with, and between which shares or seconds it lies."""
    span = place.gap_span(when.gap)
    if isinstance(when, GapSeconds):
        return parse_comparison(when.seconds, "s"), span.low, span.high, span
    scale = 1 / place.run_s if place.run_s > 0 else 1.0
    return parse_comparison(when.share, "share"), span.low * scale, span.high * scale, span


def _evaluate_gap(when: GapShare | GapSeconds, place: SiteFacts) -> Outcome:
    test, low, high, span = _gap_limits(when, place)
    holds = test.is_met_between(low, high)
    if holds is None:
        return Outcome(None, needs=(span.need,) if span.need else ())
    nearest = min((low, high), key=lambda value: test.compute_margin(value))
    of_share = isinstance(when, GapShare)
    text = when.share if isinstance(when, GapShare) else when.seconds
    formula = f"({span.formula}) / run time" if of_share else span.formula
    relation: Literal["=", ">=", "<="] = "=" if low == high else ">=" if nearest == low else "<="
    evidence = Evidence(when.gap, nearest, "share" if of_share else "s", text, formula, relation)
    return Outcome(holds, (evidence,), (), test.compute_margin(nearest))
