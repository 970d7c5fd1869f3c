"""What changes are tried on: a run by phases and, where a trace holds all its messages, its replayed operations.

A change of messages or meetings is made on the operations, which know who depends on whom. Changes of loads are made on
the phases and carried over to the computations of the ranks. What only phases can tell is tried on them alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor import bounds, gaps
from advisor.errors import AdvisorError
from advisor.traces.profile import from_trace
from advisor_simulation.replay import conversion, rebuilding
from advisor_simulation.whatif.changes import CHANGES
from advisor_simulation.whatif.runs import faster as faster_phases
from advisor_simulation.whatif.traced import background, loads, meetings, messages, pipelines, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from advisor.model import IntArray, Profile
    from advisor.traces.events import Trace
    from advisor_simulation.whatif.runs import Run
    from advisor_simulation.whatif.traced.rows import Rows

    Mask = npt.NDArray[np.bool_]
    Rewrite = Callable[[Rows, Mask], Rows | None]

#: Events of a trace whose operations are replayed, at most; larger ones are tried by phases alone.
MOST_EVENTS: Final = 2_000_000
#: By how much a replay of the unchanged operations may miss the measured time, as a share of it.
MISSED: Final = 0.02
#: Changes that are made on the operations of a trace.
REWRITES: Final[Mapping[tuple[str, str], Rewrite]] = {
    ("messages", "grouped"): messages.grouped,
    ("messages", "collective"): messages.grouped,
    ("access", "blocks"): messages.grouped,
    ("send", "early"): messages.early,
    ("receive", "early"): messages.posted,
    ("pipeline", "finer"): pipelines.finer,
    ("messages", "overlapped"): background.messages,
    ("remote", "prefetched"): background.messages,
    ("alltoall", "overlapped"): background.collectives,
    ("collectives", "nonblocking"): background.collectives,
    ("barriers", "fuzzy"): background.barriers,
    ("barriers", "removed"): meetings.without_barriers,
    ("barriers", "pairwise"): meetings.without_barriers,
    ("barriers", "relaxed"): meetings.without_barriers,
    ("barriers", "merged"): meetings.merged_barriers,
    ("reductions", "fused"): meetings.merged_collectives,
    ("collectives", "grouped"): meetings.merged_collectives,
}


@dataclass(frozen=True, slots=True)
class Traced:
    """The operations of a run: ``rows``, how long they take, and the phase and instance of each recorded one."""

    rows: Rows
    time_s: float
    site: tuple[IntArray, IntArray]

    def chosen(self, run: Run, phases: set[int]) -> Mask:
        """Return which rows lie in some phases; all of them for none."""
        if not phases:
            return np.ones(len(self.rows), dtype=bool)
        numbers = np.array([phase.number for phase in run.phases] + [-1])
        found: Mask = np.isin(numbers[self.site[0]][self.rows.key.astype(np.int64)], list(phases))
        return found

    def with_rows(self, changed: Rows) -> Traced:
        """Return the operations changed, and how long they take then; raises ``DeadlockError``."""
        return replace(self, rows=changed, time_s=rows.replayed(changed).time_s)


@dataclass(frozen=True, slots=True)
class Trial:
    """A run that changes are tried on; ``traced`` is None where it is tried by phases alone.

    ``rewritten`` says that messages or meetings are no longer the recorded ones: phases can't stand in for them then.
    """

    run: Run
    traced: Traced | None = None
    rewritten: bool = False

    @property
    def replayed(self) -> bool:
        """Whether the time is that of replayed operations, not of phases put together again."""
        return self.traced is not None

    def total(self) -> float:
        """Return the simulated wall time, seconds."""
        return self.run.total() if self.traced is None else self.traced.time_s

    def gaps(self) -> dict[str, float]:
        """Return the gaps P to X in seconds, by the formulas of docs/concepts.md."""
        if self.traced is None:
            return self.run.gaps()
        profile = profile_of(self.traced)
        found = gaps.attribute(profile, bounds.compute(profile))
        return {gap.name: gap.seconds for gap in found if gap.name in self.run.gaps()}


def of_run(run: Run, trace: Trace | None = None) -> Trial:
    """Return what changes of a run are tried on; with the operations of ``trace`` where they tell the whole run."""
    return Trial(run, None if trace is None else _traced(run, trace))


def _traced(run: Run, trace: Trace) -> Traced | None:
    """Return the operations of a trace, None where it leaves out messages or threads, or replays to another time."""
    if not 0 < len(trace.time_s) <= MOST_EVENTS or run.team.hybrid or trace.ranks != run.processors:
        return None
    try:
        program = conversion.program(trace)
        if program.left_out or not len(program.source):
            return None
        made = rows.of_program(program)
        time_s = rows.replayed(made).time_s
    except AdvisorError:
        return None
    if abs(time_s - run.profile.actual_s) > MISSED * run.profile.actual_s:
        return None
    return Traced(made, time_s, loads.places(made, run))


def changed(trial: Trial, words: Mapping[str, str], phases: set[int]) -> Trial | None:
    """Return the run after a rule's ``change`` in some phases (all, if none); None where nothing is known of it."""
    known = [word for word in words.items() if word in CHANGES or word in REWRITES]
    now: Trial | None = trial if known else None
    for word in known:
        now = _one(now, word, phases) if now is not None else None
    return now


def _one(trial: Trial, word: tuple[str, str], phases: set[int]) -> Trial | None:
    after = CHANGES[word](trial.run, phases) if word in CHANGES else None
    by_phases = Trial(after) if after is not None and not trial.rewritten else None
    if trial.traced is None:
        return by_phases
    rewrite, now = REWRITES.get(word), trial.traced.rows
    if rewrite is not None:
        made = rewrite(now, trial.traced.chosen(trial.run, phases))
    else:
        made = loads.carried(now, trial.traced.site, trial.run, after) if after is not None else None
    if made is None:
        return None if rewrite is not None else by_phases
    try:
        traced = trial.traced.with_rows(made)
    except AdvisorError:
        return by_phases
    return Trial(after or trial.run, traced, trial.rewritten or rewrite is not None)


def faster(trial: Trial, processor: float, network: float) -> Trial:
    """Return the run on processors and a network so many times as fast."""
    after = faster_phases(trial.run, processor, network)
    if trial.traced is None:
        return Trial(after)
    return Trial(after, trial.traced.with_rows(loads.faster(trial.traced.rows, processor, network)))


def profile_of(traced: Traced) -> Profile:
    """Return the profile of replayed operations."""
    program, mine = rows.changed_program(traced.rows)
    ends = rows.replayed(traced.rows).end_s[mine]
    return from_trace(rebuilding.trace(program, ends), program.title, "replay")
