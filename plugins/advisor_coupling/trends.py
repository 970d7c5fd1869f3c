"""Whether values rise or fall in the order in which they were taken, and how steeply, whatever their distribution.

M. Kendall and J. Gibbons, Rank Correlation Methods, 5th edition, 1990, chapters 4 and 5; P. Sen, Estimates of the
regression coefficient based on Kendall's tau, Journal of the American Statistical Association 63 (1968).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: Up to so many values all orders are counted; beyond, their number of inversions is nearly normally distributed.
_COUNTED: Final = 33


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
