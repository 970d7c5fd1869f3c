"""Comparisons of one value with one threshold, as rules write them: ``>= 3 %``, ``< 64 KiB``, ``!= MPI_Barrier``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from advisor.advice.facts.fact_records import DIMENSIONS, Unit, Value
from advisor.model import units
from advisor.support.documents import scalars

OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_COMPARISON: Final = re.compile(r"(=>|=<|>=|<=|==|!=|>|<|=)?\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ThresholdComparison:
    """A comparison with a threshold in the base unit."""

    op: str
    threshold: float | str | bool

    def is_met(self, value: Value) -> bool:
        """Whether ``value`` passes."""
        if type(value) is float and type(self.threshold) is float:
            return OPERATORS[self.op](value, self.threshold)
        if isinstance(self.threshold, str | bool) or isinstance(value, str | bool):
            return (value == self.threshold) == (self.op == "==")
        return OPERATORS[self.op](value, self.threshold)

    def is_met_between(self, low: float, high: float) -> bool | None:
        """Whether a value between the limits passes; None where that depends on the value."""
        first, second = self.is_met(low), self.is_met(high)
        if self.op in ("==", "!="):
            inside = not isinstance(self.threshold, str) and low <= self.threshold <= high
            return first if low == high or not inside else None
        return first if first == second else None

    def compute_margin(self, value: Value, origin: float = 0.0) -> float:
        """How clearly ``value`` lies on its side, 0.5 to 1: at the threshold 0.5, twice as far from ``origin`` 1."""
        if isinstance(self.threshold, str | bool) or isinstance(value, str | bool) or self.op in ("==", "!="):
            return 1.0
        scale = abs(self.threshold - origin)
        return 0.5 + 0.5 * min(1.0, abs(value - self.threshold) / scale) if scale > 0 else 1.0


@lru_cache(maxsize=4096)
def parse_comparison(text: str, unit: Unit) -> ThresholdComparison:
    """Return the comparison that ``text`` describes for values of ``unit``; ValueError says what was expected."""
    found = _COMPARISON.fullmatch(text.strip())
    op, rest = (found[1], found[2]) if found else (None, text)
    if op in ("=", "=>", "=<"):
        raise ValueError(f"there is no operator '{op}'; expected one of {', '.join(OPERATORS)}")
    if unit in ("name", "yes/no"):
        if op not in (None, "==", "!="):
            kind = "names" if unit == "name" else "truth values"
            raise ValueError(f"{kind} have no order; expected == or != instead of {op}")
        if not rest:
            raise ValueError("the value to compare with is missing")
        return ThresholdComparison(op or "==", scalars.parse_truth(rest) if unit == "yes/no" else rest)
    if op is None:
        raise ValueError(f"the operator is missing; expected a comparison such as '>= {_example_threshold(unit)}'")
    return ThresholdComparison(op, _parse_threshold(rest, unit))


def _parse_threshold(text: str, unit: Unit) -> float:
    if unit in DIMENSIONS:
        return units.parse_quantity(text, DIMENSIONS[unit])
    try:
        return scalars.parse_number(text)
    except ValueError as error:
        raise ValueError(f"{error}; this fact is a {unit} and has no unit") from None


def _example_threshold(unit: Unit) -> str:
    return units.DIMENSIONS[DIMENSIONS[unit]].example if unit in DIMENSIONS else "1.10"


def format_comparison(test: ThresholdComparison, text: str) -> str:
    """Return a comparison as it was written, with the operator that a bare word stands for."""
    return text if text.strip().startswith(tuple(OPERATORS)) else f"{test.op} {text.strip()}"


def parse_value(text: str, unit: Unit) -> Value:
    """Return a value as an example writes it, in the unit of its fact; ValueError says what was expected."""
    if unit == "name":
        return text
    return scalars.parse_truth(text) if unit == "yes/no" else _parse_threshold(text, unit)
