"""The expected gain of an action from its realised gains in the same program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from advisor.advice.ranking.gains import ExpectedGain
from advisor.analysis.distributions import student_t_quantile
from advisor.model import policy

if TYPE_CHECKING:
    from collections.abc import Sequence


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
