"""What a change wins on a measured run: expected seconds, an interval, and the gaps afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.disturbance import UNREPEATED
from advisor_simulation.whatif.trial import Trial, apply_change

if TYPE_CHECKING:
    from advisor_simulation.whatif.measured_run import MeasuredRun

#: Half width of an 80 % interval in standard deviations.
EIGHTY: Final = 1.2816
#: By how much a remedy falls short of or exceeds what is assumed of it, as a share of the gain (one standard
#: deviation): by what is changed, from programs of the laboratory with odd seeds.
REMEDY: Final = 0.05
REMEDIES: Final[Mapping[str, float]] = {"schedule": 0.1, "serial": 0.4, "io": 0.2, "fsync": 0.2}
#: Keys of changes by which others compute what one has computed.
MOVING: Final = frozenset({"rebalance", "schedule", "serial", "threads"})
#: Instances of a phase from which on their differences are taken for scatter, not for different work.
ENOUGH: Final = 5
#: The doubt where ranks share cores: replays give each its own.
SHARED: Final = 0.25


@dataclass(frozen=True, slots=True)
class ChangeGain:
    """A change and what it wins: ``expected_s`` with the 80 % interval ``low_s`` to ``high_s``, seconds."""

    expected_s: float
    low_s: float
    high_s: float
    unchanged: Trial
    changed: Trial

    def gap_changes(self) -> dict[str, float]:
        """Return by how much each gap grows (negative: shrinks), seconds."""
        before, after = Trial(self.unchanged.run), Trial(self.changed.run)
        if self.changed.is_replayed:
            before, after = self.unchanged, self.changed
        now = after.compute_gaps()
        return {name: now[name] - seconds for name, seconds in before.compute_gaps().items() if name in now}


def try_change(trial: Trial, words: Mapping[str, str], chosen: set[int] | None = None) -> ChangeGain | None:
    """Return what a rule's change wins in the ``chosen`` phases (all, if none); None where it can't be simulated."""
    after = apply_change(trial, words, chosen or set())
    return compare_trials(trial, after, words) if after is not None else None


@dataclass(frozen=True, slots=True)
class JointGain:
    """What several changes win together, and the places of those that could not be made behind the others."""

    gain: ChangeGain
    left_out: tuple[int, ...]


def try_jointly(trial: Trial, changes: Sequence[tuple[Mapping[str, str], set[int]]]) -> JointGain:
    """Return what several changes win together, carried out one after the other."""
    now, left_out = trial, []
    for place, (words, chosen) in enumerate(changes):
        after = apply_change(now, words, chosen)
        if after is None:
            left_out.append(place)
        now = after or now
    all_words = {name: change for words, _ in changes for name, change in words.items()}
    return JointGain(compare_trials(trial, now, all_words), tuple(left_out))


def compare_trials(before: Trial, after: Trial, words: Mapping[str, str]) -> ChangeGain:
    """Return the gain of one run over another, which the change ``words`` made.

    The interval adds up, as independent: how the gain varies between iterations, how two runs of the same program
    differ (``noise_s``), the model's own error on the unchanged run, the doubt about the remedy, and for work that is
    moved, how much faster or slower it may be elsewhere, where the recording tells (memory and caches are shared).
    Moving work wins no more than all cores computing all the time.
    """
    gain = before.total_seconds() - after.total_seconds()
    if before.traced is not None and after.is_replayed:
        own = before.traced.missed_s
    else:
        gain = before.run.total_seconds() - after.run.total_seconds()
        own = float(np.hypot(_gain_noise(before.run, after.run), _model_error(before.run, after.run)))
    if not MOVING.isdisjoint(words):
        gain = min(gain, max(before.run.most_shared_seconds(), 0.0))
    doubt = max((REMEDIES.get(name, REMEDY) for name in words), default=REMEDY)
    if before.traced is not None and before.traced.shared_cores:
        doubt = max(doubt, SHARED)
    moved_s = _unrepeated_s(before) if not MOVING.isdisjoint(words) else 0.0
    spread = float(np.hypot(np.hypot(noise_s(before), moved_s), EIGHTY * np.hypot(own, doubt * gain)))
    return ChangeGain(gain, gain - spread, gain + spread, before, after)


def _unrepeated_s(trial: Trial) -> float:
    """Return by how much the computation of equal work may differ elsewhere, or in another run, seconds."""
    table = trial.run.profile.counts.get(UNREPEATED)
    return 0.0 if table is None else float(table.sum())


def noise_s(trial: Trial) -> float:
    """Return by how much two runs of the same program may differ (80 %), seconds.

    By the scatter of equal computations, where operations tell it; else by how instances usually differ from those
    before (von Neumann 1941), so that a slow drift of the work is no scatter, nor is a long disturbance.
    """
    if trial.traced is not None:
        return EIGHTY * float(np.sqrt(2.0)) * trial.traced.noise.run_s
    variance = 0.0
    for phase in trial.run.phases:
        if len(phase.start) >= ENOUGH:
            steps = np.diff(phase.durations())
            usual = float(np.median(np.abs(steps - np.median(steps)))) * 1.4826 / np.sqrt(2.0)
            variance += usual**2 * len(phase.start)
    return EIGHTY * float(np.sqrt(2.0 * variance))


def _gain_noise(before: MeasuredRun, after: MeasuredRun) -> float:
    """Return the standard error of the gain from how it varies between the iterations of each changed phase,
    seconds."""
    kept = {phase.number: phase for phase in after.phases}
    variance = 0.0
    for phase in before.phases:
        new = kept.get(phase.number)
        if new is phase:
            continue
        won = phase.durations() - (new.durations() if new is not None else 0.0)
        if len(won) >= ENOUGH:
            variance += float(won.var(ddof=1)) * len(won)
    return float(np.sqrt(variance))


def _model_error(before: MeasuredRun, after: MeasuredRun) -> float:
    """Return the model's own error on the unchanged run, in proportion to the time in the phases that change,
    seconds."""
    kept = {phase.number: phase for phase in after.phases}
    touched = sum(float(p.durations().sum()) for p in before.phases if kept.get(p.number) is not p)
    inside = before.total_seconds() - before.outside
    return before.error_s * touched / inside if inside > 0 else before.error_s
