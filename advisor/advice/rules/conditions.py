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

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from advisor.advice.facts.vocabulary import DIMENSIONS
from advisor.advice.rules.comparisons import comparison, written
from advisor.advice.rules.names import FactName, GapName, names
from advisor.model.records import Evidence
from advisor.support.documents import FieldErrors, Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.advice.facts.span import Span
    from advisor.advice.facts.vocabulary import Fact, Unit, Value
    from advisor.advice.rules.comparisons import Comparison
    from advisor.model.records import Need


class Place(Protocol):
    """What conditions ask: the facts and gaps at one site."""

    @property
    def actual_s(self) -> float:
        """The run time, seconds."""

    def fact(self, name: str) -> tuple[Fact, Value | None, Need]:
        """The fact of that name, its value here if known, and what would provide it."""

    def gap(self, name: str) -> Span:
        """The seconds of a gap here."""


@dataclass(frozen=True, slots=True)
class FactIs:
    """A fact compared with a threshold."""

    fact: FactName
    is_: str
    mark: Mark

    def __post_init__(self) -> None:
        try:
            comparison(self.is_, names().facts[self.fact].unit)
        except ValueError as error:
            raise FieldErrors([(("is",), f"{self.fact}: found '{self.is_}', {error}")]) from None


@dataclass(frozen=True, slots=True)
class GapShare:
    """The seconds of a gap as a share of the run time."""

    gap: GapName
    share: str
    mark: Mark

    def __post_init__(self) -> None:
        _check(("share",), self.share, "share")


@dataclass(frozen=True, slots=True)
class GapSeconds:
    """The seconds of a gap."""

    gap: GapName
    seconds: str
    mark: Mark

    def __post_init__(self) -> None:
        _check(("seconds",), self.seconds, "s")


def _check(path: tuple[str, ...], text: str, unit: Unit) -> None:
    try:
        comparison(text, unit)
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


def leaves(when: When) -> Iterator[Leaf]:
    """Yield the comparisons that a condition is built from, in the order in which they are written."""
    if isinstance(when, Not):
        yield from leaves(when.not_)
    elif isinstance(when, AllOf | AnyOf):
        for part in when.all if isinstance(when, AllOf) else when.any:
            yield from leaves(part)
    else:
        yield when


def evaluate(when: When, place: Place) -> Outcome:
    """Return the truth of ``when`` at ``place``, with the comparisons and missing facts that decide it."""
    if isinstance(when, AllOf):
        return _joined([evaluate(part, place) for part in when.all], deciding=False)
    if isinstance(when, AnyOf):
        return _joined([evaluate(part, place) for part in when.any], deciding=True)
    if isinstance(when, Not):
        return _negated(evaluate(when.not_, place))
    if isinstance(when, FactIs):
        return _of_fact(when, place)
    return _of_gap(when, place)


def truth(when: When, place: Place) -> bool | None:
    """Return the truth of ``when`` at ``place`` as ``evaluate`` does, without saying why: most conditions are false."""
    if isinstance(when, FactIs):
        fact, value, _ = place.fact(when.fact)
        return None if value is None else comparison(when.is_, fact.unit).holds(value)
    if isinstance(when, AllOf):
        return _truth_of(when.all, place, deciding=False)
    if isinstance(when, AnyOf):
        return _truth_of(when.any, place, deciding=True)
    if isinstance(when, Not):
        inner = truth(when.not_, place)
        return None if inner is None else not inner
    test, low, high, _ = _bounded(when, place)
    return test.holds_between(low, high)


def _truth_of(parts: tuple[When, ...], place: Place, *, deciding: bool) -> bool | None:
    """Return whether ``any`` (true decides) or ``all`` (false decides) of ``parts`` hold, no further than needed."""
    found: bool | None = not deciding
    for part in parts:
        one = truth(part, place)
        if one is deciding:
            return one
        if one is None:
            found = None
    return found


def _joined(parts: list[Outcome], *, deciding: bool) -> Outcome:
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


def _negated(outcome: Outcome) -> Outcome:
    truth = None if outcome.truth is None else not outcome.truth
    evidence = tuple(
        Evidence(piece.fact, piece.value, piece.unit, f"not {piece.condition}", piece.formula)
        for piece in outcome.evidence
    )
    return Outcome(truth, evidence, outcome.needs, outcome.surety)


def _of_fact(when: FactIs, place: Place) -> Outcome:
    fact, value, need = place.fact(when.fact)
    if value is None:
        return Outcome(None, needs=(need,))
    test = comparison(when.is_, fact.unit)
    unit = fact.unit if fact.unit in DIMENSIONS else ""
    evidence = Evidence(fact.name, value, unit, written(test, when.is_), fact.formula)
    return Outcome(test.holds(value), (evidence,), (), _surety(test, fact, value))


def _surety(test: Comparison, fact: Fact, value: Value) -> float:
    """Return how clear a comparison is; whole numbers and what is known of the run are exact, ratios begin at 1."""
    whole = fact.unit == "count" and isinstance(value, float) and value.is_integer()
    exact = whole or (fact.scope == "run" and fact.unit in ("count", "ratio"))
    return 1.0 if exact else test.surety(value, 1.0 if fact.unit == "ratio" else 0.0)


def _bounded(when: GapShare | GapSeconds, place: Place) -> tuple[Comparison, float, float, Span]:
    """Return what a gap is compared with, and between which shares or seconds it lies."""
    span = place.gap(when.gap)
    if isinstance(when, GapSeconds):
        return comparison(when.seconds, "s"), span.low, span.high, span
    scale = 1 / place.actual_s if place.actual_s > 0 else 1.0
    return comparison(when.share, "share"), span.low * scale, span.high * scale, span


def _of_gap(when: GapShare | GapSeconds, place: Place) -> Outcome:
    test, low, high, span = _bounded(when, place)
    holds = test.holds_between(low, high)
    if holds is None:
        return Outcome(None, needs=(span.need,) if span.need else ())
    nearest = min((low, high), key=lambda value: test.surety(value))
    of_share = isinstance(when, GapShare)
    text = when.share if isinstance(when, GapShare) else when.seconds
    formula = f"({span.formula}) / run time" if of_share else span.formula
    evidence = Evidence(when.gap, nearest, "share" if of_share else "s", text, formula)
    return Outcome(holds, (evidence,), (), test.surety(nearest))
