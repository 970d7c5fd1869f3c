"""Run times of several settings, taken in turns: how many times as long as the reference, and is that certain?

Every block runs each setting once, so that drift of the machine hits all of them alike. The model is a two-way layout,
log(seconds) = setting + block + noise, whose noise is pooled over all settings. Its contrasts with the reference have
Student's t distribution. Looking after every block would find a difference sooner or later: the chance of a false
alarm is spent over the looks as 1/(n (n - 1)), which sums to 1, and shared among the settings (Bonferroni).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_quantile
from advisor.model import policy

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: The chance that any of the settings is called faster or slower although none is.
FALSE_ALARM: Final = 0.01


@dataclass(frozen=True, slots=True)
class Timing:
    """One run: its setting, the block that it belongs to, and its wall time in seconds."""

    setting: str
    block: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Effect:
    """How many times as long as the reference a setting takes, with the interval that holds at every look.

    ``low`` is 0 and ``high`` infinite while nothing tells the noise.
    """

    ratio: float
    low: float
    high: float
    runs: int

    @property
    def is_faster(self) -> bool:
        """Whether the setting is certainly faster, by at least 1 %."""
        return self.high < 1 - policy.CHANGE_SHARE

    @property
    def is_slower(self) -> bool:
        """Whether the setting certainly wins less than 1 %."""
        return self.low > 1 - policy.CHANGE_SHARE


@dataclass(frozen=True, slots=True)
class Point:
    """A measured value of a setting in a block."""

    setting: str
    block: int
    value: float


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of a setting to the reference, with its standard error; infinite while nothing tells the noise."""

    difference: float
    error: float
    freedom: int
    runs: int

    def half_width(self, tests: int) -> float:
        """Return half of the interval that holds at every look, for each of so many settings together."""
        if self.freedom < 1 or self.runs < 2:
            return math.inf
        return self.error * student_t_quantile(1 - _spend_chance(self.runs) / tests / 2, self.freedom)

    @property
    def is_certain(self) -> bool:
        """Whether the difference is none of noise, as the only one that is looked at."""
        return abs(self.difference) > self.half_width(1)


def fit_contrasts(points: Sequence[Point], reference: str) -> dict[str, Contrast]:
    """Return the difference of each setting to the ``reference``: value = setting + block + noise, least squares.

    Block means are taken out first, which gives the same as a column for each block (Frisch, Waugh and Lovell).
    """
    settings = sorted({one.setting for one in points} - {reference})
    blocks = np.unique([one.block for one in points], return_inverse=True)[1]
    design = np.array([[one.setting == name for name in settings] for one in points], dtype=float)
    design = center_blocks(design.reshape(len(points), len(settings)).T, blocks)
    values = center_blocks(np.array([[one.value for one in points]]), blocks)[0]
    inverse = np.linalg.pinv(design @ design.T, hermitian=True)
    solution = inverse @ (design @ values)
    freedom = len(points) - int(blocks.max()) - 1 - int(np.linalg.matrix_rank(design @ design.T, hermitian=True))
    squares = float(((values - solution @ design) ** 2).sum())
    errors = np.sqrt(squares / freedom * np.diag(inverse)) if freedom > 0 else np.full(len(settings), math.inf)
    return {
        name: Contrast(float(difference), float(error), freedom, sum(one.setting == name for one in points))
        for name, difference, error in zip(settings, solution, errors, strict=True)
    }


def center_blocks(rows: FloatArray, blocks: IntArray) -> FloatArray:
    """Return the rows (rows, points) less their means over the points of each block, numbered from 0."""
    counts = np.bincount(blocks)
    means = np.array([np.bincount(blocks, row, len(counts)) / counts for row in rows])
    return np.asarray(rows - means.reshape(len(rows), len(counts))[:, blocks])


def estimate_effects(timings: Sequence[Timing], reference: str, tests: int) -> dict[str, Effect]:
    """Return the effect of each setting but the ``reference``; ``tests`` settings share the chance of a false alarm.

    Disturbed runs are left out. Settings or blocks of which too little is left have an unbounded interval.
    """
    points = [Point(one.setting, one.block, math.log(one.seconds)) for one in timings]
    effects = {}
    for name, found in fit_contrasts(drop_disturbed(points, policy.CHANGE_SHARE), reference).items():
        middle, width = found.difference, found.half_width(tests)
        effects[name] = Effect(math.exp(middle), math.exp(middle - width), _exponential(middle + width), found.runs)
    return effects


def _spend_chance(looks: int) -> float:
    """Return what of the chance of a false alarm the look after so many runs, at least two, may use up."""
    return FALSE_ALARM / (looks * (looks - 1))


def _exponential(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def drop_disturbed(points: Sequence[Point], least: float = 0.0) -> list[Point]:
    """Return the points without those of disturbed runs, by the rule of ``comparison.select_undisturbed``.

    Such a value is above the lowest of its setting by more than ``least``, and by more than four times the median of
    what values are above the lowest of theirs.
    """
    lowest: dict[str, float] = defaultdict(lambda: math.inf)
    for one in points:
        lowest[one.setting] = min(lowest[one.setting], one.value)
    above = [one.value - lowest[one.setting] for one in points]
    most = policy.DISTURBED_RUN * float(np.median([excess for excess in above if excess > 0] or [0.0]))
    return [one for one, excess in zip(points, above, strict=True) if excess <= max(most, least)]
