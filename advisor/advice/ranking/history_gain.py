"""The expected gain of an action from its realised gains in the same program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from advisor.advice.ranking.gains import ExpectedGain
from advisor.analysis.distributions import student_t_quantile
from advisor.model import policy

#: Half the width of an 80 % interval, as simulations state it, in standard deviations.
EIGHTY: Final = 1.2816


def correct_gain(shares: Sequence[float], ceiling_s: float, said: ExpectedGain) -> ExpectedGain:
    """Return what a simulation ``said`` of an action, corrected by the shares of its ceiling that it won before.

    The conjugate update of a normal distribution of unknown mean and variance (Gelman et al., Bayesian Data Analysis,
    section 3.3): the simulation counts as one observation, of its share and of its scatter. Expected is the mean of
    all, the interval that of a further observation: Student's t with 2 + n degrees of freedom.
    """
    from statistics import fmean  # only a history asks for it

    if not shares or ceiling_s <= 0.0:
        return said
    before, deviation = said.expected_s / ceiling_s, (said.high_s - said.low_s) / (2 * EIGHTY * ceiling_s)
    count, mean = len(shares), fmean(shares)
    center = (before + count * mean) / (1 + count)
    squares = sum((share - mean) ** 2 for share in shares) + count / (1 + count) * (mean - before) ** 2
    freedom = 2 + count
    variance = (2 * deviation**2 + squares) / freedom * (2 + count) / (1 + count)
    reach = student_t_quantile((1 + policy.GAIN_LEVEL) / 2, freedom) * math.sqrt(variance)
    return ExpectedGain(center * ceiling_s, (center - reach) * ceiling_s, (center + reach) * ceiling_s, "history")


def compute_gain(shares: Sequence[float], ceiling_s: float) -> ExpectedGain:
    """Return the gain in seconds of an action that has won these ``shares`` of its ceiling, at least one.

    Expected is their mean. The interval is the prediction interval for one more observation of a normal distribution,
    mean ± t sqrt(1 + 1/n) s; a single observation says nothing about the spread: anything from nothing to all of it.
    """
    from statistics import mean, stdev  # only a history asks for them

    center, count = mean(shares), len(shares)
    if count == 1:
        return ExpectedGain(center * ceiling_s, min(center, 0.0) * ceiling_s, max(center, 1.0) * ceiling_s, "history")
    reach = student_t_quantile((1 + policy.GAIN_LEVEL) / 2, count - 1) * math.sqrt(1 + 1 / count) * stdev(shares)
    return ExpectedGain(center * ceiling_s, (center - reach) * ceiling_s, (center + reach) * ceiling_s, "history")
