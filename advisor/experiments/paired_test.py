"""Run times of several settings, taken in turns: how many times as long as the reference, and is that certain?

Every block runs each setting once, so that drift of the machine hits all of them alike. The model is a two-way layout,
log(seconds) = setting + block + noise, whose noise is pooled over all settings. Its contrasts with the reference have
Student's t distribution. Looking after every block would find a difference sooner or later: the chance of a false
alarm is spent over the looks as 1/(n (n - 1)), which sums to 1, and shared among the settings (Bonferroni).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_quantile
from advisor.model import policy

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def estimate_effects(timings: Sequence[Timing], reference: str, tests: int) -> dict[str, Effect]:
    """Return the effect of each setting but the ``reference``; ``tests`` settings share the chance of a false alarm.

    Disturbed runs are left out. Settings or blocks of which too little is left have an unbounded interval.
    """
    kept = drop_disturbed(timings)
    settings = sorted({one.setting for one in kept} - {reference})
    blocks = sorted({one.block for one in kept})
    columns = {name: number for number, name in enumerate(settings)}
    design = np.zeros((len(kept), len(settings) + len(blocks)))
    for row, one in enumerate(kept):
        if one.setting != reference:
            design[row, columns[one.setting]] = 1.0
        design[row, len(settings) + blocks.index(one.block)] = 1.0
    times = np.log([one.seconds for one in kept])
    solution, _, rank, _ = np.linalg.lstsq(design, times, rcond=None)
    freedom = len(kept) - int(rank)
    squares = float(((times - design @ solution) ** 2).sum())
    inverse = np.linalg.pinv(design.T @ design)
    effects = {}
    for name, column in columns.items():
        runs = sum(one.setting == name for one in kept)
        width = math.inf
        if freedom > 0 and runs > 1:
            error = math.sqrt(squares / freedom * inverse[column, column])
            width = error * student_t_quantile(1 - _spend_chance(runs) / tests / 2, freedom)
        ratio = float(solution[column])
        effects[name] = Effect(math.exp(ratio), math.exp(ratio - width), _exponential(ratio + width), runs)
    return effects


def _spend_chance(looks: int) -> float:
    """Return what of the chance of a false alarm the look after so many runs, at least two, may use up."""
    return FALSE_ALARM / (looks * (looks - 1))


def _exponential(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def drop_disturbed(timings: Sequence[Timing]) -> list[Timing]:
    """Return the runs without those that the machine disturbed, by the rule of ``comparison.select_undisturbed``.

    Such a run took longer than the fastest of its setting by more than 1 %, and by more than four times the median of
    what runs took longer than the fastest of theirs; shares of the fastest, since settings differ in their times.
    """
    fastest: dict[str, float] = defaultdict(lambda: math.inf)
    for one in timings:
        fastest[one.setting] = min(fastest[one.setting], one.seconds)
    longer = [one.seconds / fastest[one.setting] - 1 for one in timings]
    most = policy.DISTURBED_RUN * float(np.median([share for share in longer if share > 0] or [0.0]))
    return [one for one, share in zip(timings, longer, strict=True) if share <= max(most, policy.CHANGE_SHARE)]
