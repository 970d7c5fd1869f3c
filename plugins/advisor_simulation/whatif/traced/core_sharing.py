"""Whether ranks take turns on too few cores, as their computations show without CPU times.

Who has to wait for a core waits for whole turns: until a time slice is over, or until those before have done the same
work. So equal computations last one turn longer, or two, or three, and now this rank is last and now that one. Work
that differs is not counted in steps of one length; where it is, the same ranks keep the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.work import Unit

#: Ranks on a host, and times longer than the shortest of a pass, from which on steps are told from chance.
LEAST_RANKS: Final = 3
LEAST_COUNT: Final = 20
#: The part of all computation that a unit has at least.
LEAST_SHARE: Final = 0.01
#: Computations that scatter by less (a standard deviation, relative) wait for no core.
OWN_CORE: Final = 0.01
#: Times that differ from the shortest by less than this part of it are equal.
EQUAL: Final = 0.04
#: How far from a whole number of steps a time may be, and how many of them may be farther.
NEAR: Final = 0.12
WHOLE: Final = 0.9
#: The part of all longer times that has to take one step, and that has to take more.
TURN_SHARE: Final = 0.1
#: Ranks that are in one step in more than this part of the passes keep it.
STEADY: Final = 0.85
#: The part of the passes that has the same number of ranks in each step, and the part in which ranks change places.
SAME_STEPS: Final = 0.8
EXCHANGED: Final = 0.05


def are_cores_shared(found: Sequence[Unit], hosts: IntArray) -> bool:
    """Return whether ranks of a host take turns; ``hosts`` (ranks,) says which host each is on.

    Units with little of the computation don't tell: their times may be a few ticks of the timer, which are steps, too.
    Nor do others if ranks always take as long in more of the computation: they have cores of their own.
    """
    least_s = LEAST_SHARE * sum(float(unit.seconds.sum()) for unit in found)
    turning_s = steady_s = 0.0
    for unit in found:
        whole_s = float(unit.seconds.sum())
        if whole_s >= least_s and _has_turns(unit, hosts):
            turning_s += whole_s
        elif 0.0 < unit.noise <= OWN_CORE:
            steady_s += whole_s
    return turning_s > steady_s


def _has_turns(unit: Unit, hosts: IntArray) -> bool:
    groups = [ranks for ranks in unit.find_working_groups(hosts) if len(ranks) >= LEAST_RANKS]
    return any(_takes_turns(seconds[ranks]) for seconds in unit.divide_passes(unit.seconds) for ranks in groups)


def _takes_turns(seconds: FloatArray) -> bool:
    """Return whether seconds (ranks, passes) of one host differ by whole steps, in which ranks change places.

    A rank that is always late by as much has more to do, or a slow core: that says nothing of the others.
    """
    least = seconds.min(axis=0)
    usual = float(np.median(least))
    longer = seconds - least
    late = longer > EQUAL * usual
    if usual <= 0 or late.sum() < LEAST_COUNT:
        return False
    smallest = float(np.quantile(longer[late], 0.02))
    step = float(np.median(longer[late & (longer <= 1.4 * smallest)]))
    turns = np.rint(longer / step)
    moving = np.array([not _is_always_late(row) for row in turns.astype(np.int64)])
    longer, late, turns = longer[moving], late[moving], turns[moving]
    if late.sum() < LEAST_COUNT:
        return False
    whole = np.abs(longer / step - turns)[late] <= NEAR
    once, more = ((turns[late] == 1).mean(), (turns[late] > 1).mean())
    several = once >= TURN_SHARE and more >= TURN_SHARE
    behind_one = abs(step - usual) <= EQUAL * usual and once >= TURN_SHARE
    steady = np.mean([np.bincount(row).max() / len(row) for row in turns.astype(np.int64)])
    changing = (several or behind_one) and steady <= STEADY
    return bool(whole.mean() >= WHOLE and (changing or _change_places(turns)))


def _change_places(turns: FloatArray) -> bool:
    """Return whether each step has the same number of ranks in most passes, while ranks change places.

    Work that wanders does so, too, if it is one rank that has more: several have to be late, or by different steps.
    """
    steps, number = np.unique(np.sort(turns, axis=0), axis=1, return_inverse=True)
    counts = np.bincount(number.ravel())
    usual = int(counts.argmax())
    alike = turns[:, number.ravel() == usual]
    _, times = np.unique(alike, axis=1, return_counts=True)
    late = turns[turns > 0]
    several = len(np.unique(late)) > 1 or (steps[:, usual] > 0).sum() > 1
    exchanged = 1.0 - times.max() / alike.shape[1]
    return bool(several and counts[usual] >= SAME_STEPS * turns.shape[1] and exchanged >= EXCHANGED)


def _is_always_late(turns: IntArray) -> bool:
    """Return whether a rank is late by the same number of steps in most passes."""
    counts = np.bincount(turns)
    return bool(counts[1:].max(initial=0) > STEADY * len(turns))
