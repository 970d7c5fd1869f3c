"""What disturbed an experiment: single runs far off, and a machine that became slower or faster meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_coupling.cases import SECONDS, Chain, CouplingCase

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: Up to so many values all orders are counted; beyond, their number of inversions is nearly normally distributed.
_COUNTED: Final = 33

#: A run is off where it is so many median deviations (as standard deviations) and such a share above the median.
_DEVIATIONS: Final = 5.0
_SHARE: Final = 0.20
_NORMAL: Final = 1.4826
#: Drift is noticed from such a change over the rounds on, where the order of the rounds by speed is no accident.
_DRIFT: Final = 0.05
_ACCIDENT: Final = 0.02


@dataclass(frozen=True, slots=True)
class Outlier:
    """A run that took much longer (or less) than others of its chain: its round, its value over the median."""

    case: CouplingCase
    chain: Chain
    round: int
    factor: float


@dataclass(frozen=True, slots=True)
class Drift:
    """How much slower (above 1) all chains were at the end than at the beginning, and how likely chance alone is."""

    case: CouplingCase
    factor: float
    chance: float


def find_outliers(case: CouplingCase) -> tuple[Outlier, ...]:
    """Return the runs that are far off; medians bear them, and they widen the intervals."""
    found = []
    for chain, series in case.samples.get(SECONDS, {}).items():
        known = series[np.isfinite(series)]
        if len(known) < 3:
            continue
        middle = float(np.median(known))
        limit = max(_DEVIATIONS * _NORMAL * float(np.median(np.abs(known - middle))), _SHARE * abs(middle))
        off = np.flatnonzero(np.abs(series - middle) > limit)
        found += [Outlier(case, chain, int(turn), float(series[turn]) / middle) for turn in off if middle]
    return tuple(sorted(found, key=lambda one: -abs(np.log(max(one.factor, 1e-9)))))


def find_drift(case: CouplingCase) -> Drift | None:
    """Return a steady change over the rounds, None where there is none.

    Each round's speed is the median over the chains of value over the chain's median; Kendall's rank correlation with
    the number of the round tells a trend from chance, Theil's slope how large it is.
    """
    speeds = _compute_speeds(case)
    rounds = np.flatnonzero(np.isfinite(speeds))
    if len(rounds) < 5:
        return None
    chance = chance_of_trend(speeds[rounds])
    change = median_slope(rounds, speeds[rounds]) * int(rounds[-1] - rounds[0])
    if chance > _ACCIDENT or abs(change) < _DRIFT:
        return None
    return Drift(case, 1 + change, chance)


def _compute_speeds(case: CouplingCase) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return (rounds,): how slow each round was, 1 being usual; NaN for a round without runs."""
    table = [series for series in case.samples.get(SECONDS, {}).values() if np.isfinite(series).any()]
    if not table:
        return np.empty(0)
    longest = max(len(series) for series in table)
    padded = np.full((len(table), longest), np.nan)
    for row, series in enumerate(table):
        padded[row, : len(series)] = series / np.nanmedian(series)
    seen = np.isfinite(padded).any(axis=0)
    speeds = np.full(longest, np.nan)
    speeds[seen] = np.nanmedian(padded[:, seen], axis=0)
    return speeds


def median_slope(x: IntArray | FloatArray, y: FloatArray) -> float:
    """Return the median of the slopes between all pairs of points with different ``x`` (n,), the Theil-Sen slope."""
    first, second = np.triu_indices(len(x), 1)
    run = x[second] - x[first]
    rising = run != 0
    return float(np.median((y[second] - y[first])[rising] / run[rising]))


def chance_of_trend(values: FloatArray) -> float:
    """Return the probability (two-sided) of as strong a trend where all orders of ``values`` (n,) are equally likely.

    The measure is Kendall's: pairs in rising order less pairs in falling order. Without ties among up to 33 values
    the probability is exact, otherwise that of the normal distribution with the same variance.
    """
    count = len(values)
    first, second = np.triu_indices(count, 1)
    score = abs(int(np.sign(values[second] - values[first]).sum()))
    _, ties = np.unique(values, return_counts=True)
    if count <= _COUNTED and len(ties) == count:
        pairs = count * (count - 1) // 2
        return min(1.0, 2.0 * _share_of_orders(count, (pairs - score) // 2))
    variance = _score_scale(count) - sum(_score_scale(int(tied)) for tied in ties)
    return math.erfc(score / math.sqrt(2.0 * variance)) if variance > 0 else 1.0


def _score_scale(count: int) -> float:
    """Return the variance of the score of so many values in random order; that much less for as many equal ones."""
    return count * (count - 1) * (2 * count + 5) / 18


def _share_of_orders(count: int, inversions: int) -> float:
    """Return the share of the orders of ``count`` different values that have at most so many inversions.

    The next value, put before 0, 1, … all of the others, adds as many inversions.
    """
    orders = [1]
    for size in range(2, count + 1):
        longer = [0] * (len(orders) + size - 1)
        for added in range(size):
            for number, ways in enumerate(orders):
                longer[number + added] += ways
        orders = longer
    return sum(orders[: inversions + 1]) / math.factorial(count)
