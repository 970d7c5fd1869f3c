"""What a change wins on a measured run: expected seconds, an interval, and what becomes of the gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_simulation.whatif.changes import change_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor_simulation.whatif.runs import Run

#: Half width of an 80 % interval in standard deviations.
EIGHTY: Final = 1.2816
#: By how much a remedy falls short of or exceeds what is assumed of it, as a share of the gain (one standard
#: deviation).
REMEDY: Final = 0.05


@dataclass(frozen=True, slots=True)
class Tried:
    """A change and what it wins: ``expected_s`` with the 80 % interval ``low_s`` to ``high_s``; the run without and
    with it."""

    expected_s: float
    low_s: float
    high_s: float
    measured: Run
    changed: Run

    @property
    def after(self) -> Mapping[str, float]:
        """The gaps of the changed run, seconds."""
        return self.changed.gaps()

    @property
    def moved(self) -> dict[str, float]:
        """Return by how much each gap grows (negative: shrinks), seconds."""
        after = self.after
        return {name: after[name] - seconds for name, seconds in self.measured.gaps().items()}


def tried(run: Run, words: Mapping[str, str], chosen: set[int] | None = None) -> Tried | None:
    """Return what a rule's change wins in the ``chosen`` phases (all, if none); None where it can't be simulated."""
    change = change_of(words)
    after = change(run, chosen or set()) if change else None
    return compared(run, after) if after is not None else None


def joint(run: Run, changes: Sequence[tuple[Mapping[str, str], set[int]]]) -> Tried | None:
    """Return what several changes win together, carried out one after the other."""
    now: Run | None = run
    for words, chosen in changes:
        change = change_of(words)
        now = change(now, chosen) if change and now is not None else now
    return compared(run, now) if now is not None else None


def compared(before: Run, after: Run) -> Tried:
    """Return the gain of one run over another.

    The interval adds up, as independent: how the gain varies between iterations, how two runs of the same program
    differ (the scatter of all instances, twice), the model's own error on the unchanged run, and the doubt about the
    remedy.
    """
    gain = before.total() - after.total()
    parts = (_noise(before, after), np.sqrt(2.0) * _scatter(before), _share_of_error(before, after), REMEDY * gain)
    spread = EIGHTY * float(np.sqrt(np.sum(np.square(parts))))
    return Tried(gain, gain - spread, gain + spread, before, after)


def _scatter(run: Run) -> float:
    """Return the standard deviation of a run's time, as the scatter of its instances tells it, seconds.

    From differences of neighbours, so that a slow drift of the work is no scatter (von Neumann 1941).
    """
    variance = 0.0
    for phase in run.phases:
        steps = np.diff(phase.durations())
        if len(steps):
            variance += float(np.mean(steps**2)) / 2 * len(phase.start)
    return float(np.sqrt(variance))


def _noise(before: Run, after: Run) -> float:
    """Return the standard error of the gain from how it varies between the iterations of each changed phase,
    seconds."""
    kept = {phase.number: phase for phase in after.phases}
    variance = 0.0
    for phase in before.phases:
        new = kept.get(phase.number)
        if new is phase:
            continue
        won = phase.durations() - (new.durations() if new is not None else 0.0)
        if len(won) > 1:
            variance += float(won.var(ddof=1)) * len(won)
    return float(np.sqrt(variance))


def _share_of_error(before: Run, after: Run) -> float:
    """Return the model's own error on the unchanged run, in proportion to the time in the phases that change,
    seconds."""
    kept = {phase.number: phase for phase in after.phases}
    touched = sum(float(p.durations().sum()) for p in before.phases if kept.get(p.number) is not p)
    inside = before.total() - before.outside
    return before.error_s * touched / inside if inside > 0 else before.error_s
