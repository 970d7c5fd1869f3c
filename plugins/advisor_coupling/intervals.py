"""Intervals for everything that is computed from repeated measurements: a bootstrap over the rounds.

A resample draws whole rounds, so that what slows all runs of a round down cancels in ratios; the value of a chain is
the median over the drawn rounds. Percentile intervals of few repeats are too narrow; they are widened by
sqrt(n / (n - 1)) t(n - 1) / z, the expanded percentile interval of Hesterberg, "What Teachers Should Know About the
Bootstrap", The American Statistician 69 (2015), section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_quantile

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_coupling.cases import Chain, CouplingCase

#: The probability of every interval: a table has dozens of couplings, and of 95 % one or two would be wrong in each.
LEVEL: Final = 0.99
DRAWS: Final = 4000
_SEED: Final = 1
#: With fewer repeats nothing is said about noise.
FEWEST: Final = 3
#: With fewer repeats the median is often the outermost value of a side: then the other side's width holds for both.
_BOTH_SIDES: Final = 5


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its interval (``LEVEL``); both ends are NaN where there were too few repeats."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def reduce_by(self, part: Estimate) -> Estimate:
        """Return what is left of it without a part of it; its ends where the other's are opposite."""
        return Estimate(self.value - part.value, self.low - part.high, self.high - part.low)

    def scale_by(self, factor: float) -> Estimate:
        """Return its multiple by ``factor``."""
        return Estimate(factor * self.value, factor * self.low, factor * self.high)

    @property
    def half_width(self) -> float:
        """Half of the interval's length over the value, NaN without one."""
        return (self.high - self.low) / 2 / abs(self.value) if self.value else float("nan")


def count_rounds(case: CouplingCase, metric: str) -> int:
    """Return the number of rounds of the longest series."""
    lengths = [len(series) for series in case.samples[metric].values()]
    return max([*lengths, len(case.application.get(metric, ())), len(case.once.get(metric, ()))])


def draw_rounds(rounds: int) -> IntArray:
    """Return (draws + 1, rounds): the first row is the measurement itself, the others are drawn with replacement."""
    drawn = np.random.default_rng(_SEED).integers(0, rounds, size=(DRAWS, rounds))
    return np.vstack([np.arange(rounds), drawn])


def resample_medians(series: FloatArray, rows: IntArray) -> FloatArray:
    """Return the median of the series over each row of rounds; one that lacks rounds is drawn by itself."""
    known = series[np.isfinite(series)]
    if len(known) == rows.shape[1]:
        return np.asarray(np.median(known[rows], axis=1))
    own = np.random.default_rng(_SEED).integers(0, len(known), size=(len(rows) - 1, len(known)))
    return np.concatenate([[np.median(known)], np.median(known[own], axis=1)])


def estimate_interval(values: FloatArray, repeats: int, least: float = -math.inf) -> Estimate:
    """Return value and interval of a quantity (draws + 1,) computed from each resample.

    ``least``: what it can't be below, such as 0 for a time; the interval ends there.
    """
    if repeats < FEWEST:
        return Estimate(float(values[0]), float("nan"), float("nan"))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values[1:], [tail, 1 - tail])
    wide, centre = compute_widening(repeats), float(values[0])
    below, above = max(centre - float(low), 0.0), max(float(high) - centre, 0.0)
    if repeats < _BOTH_SIDES:
        below = above = max(below, above)
    return Estimate(centre, max(centre - wide * below, min(least, centre)), centre + wide * above)


def compute_widening(repeats: int) -> float:
    """Return the factor that widens the percentile interval of ``repeats``."""
    quantile = 1 - (1 - LEVEL) / 2
    stretch = student_t_quantile(quantile, repeats - 1) / NormalDist().inv_cdf(quantile)
    return math.sqrt(repeats / (repeats - 1)) * stretch


def count_fewest_repeats(case: CouplingCase, metric: str, chains: tuple[Chain, ...]) -> int:
    """Return the number of repeats of the chain that has the fewest."""
    counts = [int(np.isfinite(case.samples[metric][chain]).sum()) for chain in chains]
    return min(counts, default=0)
