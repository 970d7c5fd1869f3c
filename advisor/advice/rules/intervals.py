"""Satisfiability of comparisons, from the intervals of values that facts can have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.advice.rules.comparisons import ThresholdComparison, parse_comparison
from advisor.advice.rules.conditions import FactIs, GapShare, Leaf

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact, Unit

_OPPOSITE: Final = {">=": "<", "<": ">=", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
#: Ratios of a maximum to a mean, which are never below 1.
_AT_LEAST_ONE: Final = ("imbalance", "dynamic_ratio")


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison of one quantity: its name, the operator, the threshold, and the values it can have at all."""

    name: str
    op: str
    threshold: float | str | bool
    least: float
    most: float


def make_atom(leaf: Leaf, vocabulary: Mapping[str, Fact], *, holds: bool = True) -> Atom:
    """Return a comparison, or its opposite where it must not hold. Gaps may be negative, facts are not.

    No gap is larger than the run where a profile is good enough to advise from.
    """
    if isinstance(leaf, FactIs):
        fact = vocabulary[leaf.fact]
        least, most = _value_limits(fact.name, fact.unit)
        return _build_atom(leaf.fact, parse_comparison(leaf.is_, fact.unit), holds, least, most)
    if isinstance(leaf, GapShare):
        return _build_atom(f"share of gap {leaf.gap}", parse_comparison(leaf.share, "share"), holds, -math.inf, 1.0)
    return _build_atom(f"seconds of gap {leaf.gap}", parse_comparison(leaf.seconds, "s"), holds, -math.inf, math.inf)


def _build_atom(name: str, test: ThresholdComparison, holds: bool, least: float, most: float) -> Atom:
    return Atom(name, test.op if holds else _OPPOSITE[test.op], test.threshold, least, most)


def _value_limits(name: str, unit: Unit) -> tuple[float, float]:
    if name.endswith(_AT_LEAST_ONE):
        return 1.0, math.inf
    return 0.0, 1.0 if unit == "share" else math.inf


def is_always_true(one: Atom) -> bool:
    """Return whether a comparison with a number holds for every value that the quantity can have."""
    if isinstance(one.threshold, str | bool):
        return False
    return (one.op == ">=" and one.threshold <= one.least) or (one.op == "<=" and one.threshold >= one.most)


def find_contradiction(atoms: Iterable[Atom]) -> str | None:
    """Return why comparisons cannot hold together, None if they can."""
    by_name: dict[str, list[Atom]] = {}
    for one in atoms:
        by_name.setdefault(one.name, []).append(one)
    return next((why for name, group in by_name.items() if (why := _find_conflict(name, group))), None)


def _find_conflict(name: str, group: list[Atom]) -> str | None:
    words = " and ".join(dict.fromkeys(f"{one.op} {_format_threshold(one.threshold)}" for one in group))
    values = {one.threshold for one in group if one.op == "=="}
    if len(values) > 1 or any(one.op == "!=" and one.threshold in values for one in group):
        return f"{name} cannot be {words}"
    truths = {one.threshold for one in group if one.op == "!=" and isinstance(one.threshold, bool)}
    if len(truths) > 1:
        return f"{name} cannot be {words}"
    return f"{name} cannot be {words}" if not _has_room(group) else None


def _has_room(group: list[Atom]) -> bool:
    """Return whether a number lies between all limits."""
    low, high, low_open, high_open = group[0].least, group[0].most, False, False
    for one in group:
        if isinstance(one.threshold, str | bool) or one.op == "!=":
            continue
        if one.op in (">", ">=", "==") and (one.threshold, one.op == ">") > (low, low_open):
            low, low_open = one.threshold, one.op == ">"
        if one.op in ("<", "<=", "==") and (one.threshold, one.op != "<") < (high, not high_open):
            high, high_open = one.threshold, one.op == "<"
    return low < high or (low == high and not low_open and not high_open)


def _format_threshold(threshold: float | str | bool) -> str:
    return str(threshold) if isinstance(threshold, str | bool) else f"{threshold:g}"
