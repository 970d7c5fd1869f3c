"""Factors of the normal form, and the library of those that are tried for each parameter.

A model is a sum of terms, a term a coefficient times one factor per parameter, a factor
``x^power * log2(x)^logs`` (the performance model normal form of A. Calotoiu et al., SC 2013). Added here: negative
powers for numbers of processors (strong scaling), factors that begin beyond a knee (a working set that leaves a cache,
a second node) and factors that stop at one (saturation).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

Shape = Literal["all", "beyond", "until"]

#: Powers and logarithms of a growing parameter: 42 combinations of those that algorithms have.
_GROWING: Final = """
    0,1 0,2 1/4,0 1/4,1 1/4,2 1/3,0 1/3,1 1/3,2 1/2,0 1/2,1 1/2,2 2/3,0 2/3,1 2/3,2 3/4,0 3/4,1 3/4,2 4/5,0 1,0 1,1 1,2
    5/4,0 5/4,1 4/3,0 4/3,1 3/2,0 3/2,1 3/2,2 5/3,0 7/4,0 2,0 2,1 2,2 9/4,0 7/3,0 5/2,0 5/2,1 5/2,2 8/3,0 11/4,0 3,0 3,1
"""
#: The same for a parameter that work is divided by: volumes, surfaces (2/3) and edges of a processor's part.
_FALLING: Final = "-1/4,0 -1/3,0 -1/2,0 -1/2,1 -2/3,0 -2/3,1 -3/4,0 -1,0 -1,1 -4/3,0 -3/2,0 -2,0"
#: Names of parameters that count processors.
PROCESSORS: Final = re.compile(r"p|np|procs?|processors?|processes|ranks?|n?threads|cores|nodes|tasks", re.IGNORECASE)
#: Knees are tried where a parameter has at least that many values.
VALUES_FOR_KNEES: Final = 6
_KNEE_PRIOR: Final = 0.3


@dataclass(frozen=True, slots=True, order=True)
class Factor:
    """``x^power * log2(x)^logs``; ``beyond``: zero up to the knee; ``until``: constant from the knee on."""

    power: Fraction
    logs: int = 0
    shape: Shape = "all"
    knee: float = 0.0

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the factor at ``x`` (any shape, above zero)."""
        inside = np.minimum(x, self.knee) if self.shape == "until" else x
        value = inside ** float(self.power)
        if self.logs:
            value = value * np.log2(inside) ** self.logs
        return np.where(x > self.knee, value, 0.0) if self.shape == "beyond" else np.asarray(value)


UNIT_FACTOR: Final = Factor(Fraction(0))


@dataclass(frozen=True, slots=True)
class FactorLibrary:
    """The factors that are tried for one parameter, ``UNIT_FACTOR`` first, with the weight of each before any data."""

    parameter: str
    factors: tuple[Factor, ...]
    prior: tuple[float, ...]

    def build_table(self, x: FloatArray) -> FloatArray:
        """Return every factor at ``x`` (n,): shape (factors, n)."""
        return np.stack([factor(x) for factor in self.factors])

    @property
    def powers(self) -> FloatArray:
        """The power of each factor in the direction of growth; a factor that has saturated does not grow."""
        return np.array([0.0 if factor.shape == "until" else float(factor.power) for factor in self.factors])


def build_library(parameter: str, values: FloatArray, falls: bool = False) -> FactorLibrary:
    """Return the factors to try for a parameter measured at ``values``; negative powers where work is divided by it."""
    factors = [UNIT_FACTOR, *_parse_factors(_GROWING)]
    if falls or PROCESSORS.fullmatch(parameter):
        factors += _parse_factors(_FALLING)
    if values.min() < 1.0:
        factors = [factor for factor in factors if factor.logs == 0]
    plain = [_factor_weight(factor) for factor in factors[1:]]
    distinct = np.unique(values)
    knees = list(_iterate_knees(parameter, distinct))
    each = [weight / sum(plain) for weight in plain]
    weight = _KNEE_PRIOR / len(knees) if knees else 0.0
    return FactorLibrary(parameter, (*factors, *knees), (1.0, *each, *[weight] * len(knees)))


def _factor_weight(factor: Factor) -> float:
    """Return how much more plausible a factor is than the odd ones: algorithms mostly have whole powers."""
    whole = {1: 3.0, 2: 1.5}.get(factor.power.denominator, 1.0)
    return whole / (1.0 + 0.5 * factor.logs)


def _parse_factors(text: str) -> Iterable[Factor]:
    pairs = (pair.split(",") for pair in text.split())
    return [Factor(Fraction(power), int(logs)) for power, logs in pairs]


def _iterate_knees(parameter: str, distinct: FloatArray) -> Iterable[Factor]:
    """Yield what begins or ends between the measured values; one processor communicates with none."""
    if PROCESSORS.fullmatch(parameter) and distinct[0] == 1.0:
        yield from (Factor(Fraction(power), 0, "beyond", 1.0) for power in (0, -1))
    if len(distinct) < VALUES_FOR_KNEES:
        return
    for low, high in pairwise(distinct[1:-1]):
        knee = float(np.sqrt(low * high))
        yield from (Factor(Fraction(power), 0, "beyond", knee) for power in (0, 1, 2, 3))
    for knee in distinct[1:-2]:
        yield from (Factor(Fraction(power), 0, "until", float(knee)) for power in (-1, 1, 2))


def find_falling(points: FloatArray, values: FloatArray) -> list[bool]:
    """Return for each parameter (columns of ``points`` (n, m)) whether some series (rows of (k, n)) falls along it."""
    return [_falls_along(points, values, axis) for axis in range(points.shape[1])]


def _falls_along(points: FloatArray, values: FloatArray, axis: int) -> bool:
    others = np.delete(points, axis, axis=1)
    order = np.lexsort((points[:, axis], *others.T))
    same = (np.diff(others[order], axis=0) == 0.0).all(axis=1)
    if not same.any():  # no two points differ in this parameter alone
        return False
    first, second = values[:, order[:-1]][:, same], values[:, order[1:]][:, same]
    return bool(((first - second) > 0.25 * np.abs(first)).mean(axis=1).max(initial=0.0) > 0.5)


def build_tables(libraries: Sequence[FactorLibrary], points: FloatArray) -> list[FloatArray]:
    """Return the table of each parameter's library at ``points`` (n, m): shapes (factors, n)."""
    return [each.build_table(points[:, axis]) for axis, each in enumerate(libraries)]
