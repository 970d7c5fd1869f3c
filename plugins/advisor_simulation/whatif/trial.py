"""What changes are tried on: a run by phases and, where a trace holds all its messages, its replayed operations.

A change of messages or meetings is made on the operations, which know who depends on whom. Changes of loads are made on
the phases and carried over to the computations of the ranks. What only phases can tell is tried on them alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.analysis import bounds, gaps
from advisor.model.errors import AdvisorError
from advisor_simulation.whatif.changes import CHANGES
from advisor_simulation.whatif.measured_run import MeasuredRun, build_run
from advisor_simulation.whatif.measured_run import scale_speed as faster_phases

if TYPE_CHECKING:
    from advisor.model.records import Profile
    from advisor.trace.events import Trace
    from advisor_simulation.whatif.excerpt import Excerpt
    from advisor_simulation.whatif.traced.operations import TracedOperations


#: Events of a trace whose operations are all replayed, at most; of longer ones an excerpt is.
WHOLE_EVENTS: Final = 600_000
#: Rows, or values of phases, that all simulations of a run may go through: some 20 s of one core. The load of the
#: machine must not decide what is advised, so work is counted and no clock is read.
MOST_ROWS: Final = 60_000_000
#: What a simulation costs however small the run is.
LEAST_ROWS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Trial:
    """A run that changes are tried on; ``traced`` is None where it is tried by phases alone.

    ``rewritten`` says that messages or meetings are no longer the recorded ones: phases can't stand in for them then.
    ``run`` is an ``excerpt`` of a long run, the ``whole``, if there is one.
    """

    run: MeasuredRun
    traced: TracedOperations | None = None
    rewritten: bool = False
    excerpt: Excerpt | None = None
    whole: MeasuredRun | None = None

    def scale_gain(self, phases: set[int]) -> float:
        """Return the factor from a gain in these phases (all, if none) to that in the represented run."""
        return 1.0 if self.excerpt is None else self.excerpt.scale_gain(phases)

    @property
    def is_replayed(self) -> bool:
        """Whether the time comes from replayed operations, not from phases."""
        return self.traced is not None

    @property
    def cost(self) -> int:
        """What trying a change costs: the rows that are changed and replayed, or the values of all loads."""
        rows = sum(phase.work.size for phase in self.run.phases) if self.traced is None else len(self.traced.rows)
        return LEAST_ROWS + rows

    def total_seconds(self) -> float:
        """Return the simulated wall time, seconds."""
        return self.run.total_seconds() if self.traced is None else self.traced.time_s

    def compute_gaps(self) -> dict[str, float]:
        """Return the gaps P to X in seconds, by the formulas of docs/concepts.md."""
        if self.traced is None:
            return self.run.compute_gaps()
        profile = self.traced.build_profile()
        found = gaps.attribute_gaps(profile, bounds.compute_bounds(profile))
        return {gap.name: gap.seconds for gap in found if gap.name in self.run.compute_gaps()}


@dataclass(slots=True)
class WorkBudget:
    """What is ``left`` to be spent on simulations of a run, in rows of its operations or values of its phases."""

    left: int = MOST_ROWS

    def can_afford(self, trial: Trial, keep: float = 0.0) -> bool:
        """Return whether a change can be tried on a run so that a share ``keep`` of all is left for later ones."""
        return self.left - trial.cost >= keep * MOST_ROWS

    def spend_on(self, trial: Trial) -> None:
        """Take what trying a change on a run costs."""
        self.left -= trial.cost


class _Latest:
    """The latest run, so that its operations are prepared once."""

    profile: Profile | None = None
    trace: Trace | None = None
    trial: Trial | None = None


def find_trial(profile: Profile, trace: Trace | None) -> Trial | None:
    """Return what changes of a profile are tried on, cached for the latest profile."""
    if _Latest.profile is not profile or _Latest.trace is not trace:
        run = build_run(profile)
        _Latest.profile, _Latest.trace = profile, trace
        _Latest.trial = None if run is None else _try_excerpt(run, trace) or build_trial(run, trace)
    return _Latest.trial


def _try_excerpt(run: MeasuredRun, trace: Trace | None) -> Trial | None:
    """Return what changes of a long run are tried on: an excerpt; None for short ones, or if it can't be replayed."""
    if trace is None or len(trace.time_s) <= WHOLE_EVENTS or len(trace.locations) != run.processors:
        return None
    from advisor_simulation.whatif.excerpt import take_excerpt

    excerpt = take_excerpt(run.profile, trace)
    part = build_run(excerpt.profile) if excerpt is not None else None
    trial = build_trial(part, excerpt.trace) if part is not None and excerpt is not None else None
    return replace(trial, excerpt=excerpt, whole=run) if trial is not None and trial.is_replayed else None


def build_trial(run: MeasuredRun, trace: Trace | None = None) -> Trial:
    """Return what changes of a run are tried on; with the operations of ``trace`` if they cover the whole run."""
    if trace is None:
        return Trial(run)  # and nothing that replays traces is loaded
    from advisor_simulation.whatif.traced import operations

    traced = operations.build_operations(run, trace)
    if traced is not None:
        passes, outputs = traced.count_passes(), traced.count_outputs()
        run = run.with_phases(
            [replace(p, passes=passes.get(n, p.passes), outputs=outputs.get(n, 0)) for n, p in enumerate(run.phases)]
        )
    return Trial(run, traced)


def apply_change(trial: Trial, words: Mapping[str, str], phases: set[int]) -> Trial | None:
    """Return the run after a rule's ``change`` in some phases (all, if none); None where nothing is known of it."""
    now: Trial | None = trial if words else None
    for word in words.items():
        now = _apply_word(now, word, phases) if now is not None else None
    return now


def _apply_word(trial: Trial, word: tuple[str, str], phases: set[int]) -> Trial | None:
    after = CHANGES[word](trial.run, phases) if word in CHANGES else None
    by_phases = Trial(after) if after is not None and not trial.rewritten else None
    if trial.traced is None:
        return by_phases
    rewritten = trial.traced.is_rewrite(word)
    try:
        traced = trial.traced.apply_change(word, trial.run, after, phases)
    except AdvisorError:
        return None if trial.traced.is_decided(word) else by_phases
    if traced is None:
        return None if trial.traced.is_decided(word) else by_phases
    return Trial(after or trial.run, traced, trial.rewritten or rewritten)


def scale_speed(trial: Trial, processor: float, network: float) -> Trial:
    """Return the run on a processor and a network sped up by these factors."""
    after = faster_phases(trial.run, processor, network)
    return Trial(after, None if trial.traced is None else trial.traced.scale_speed(processor, network))
