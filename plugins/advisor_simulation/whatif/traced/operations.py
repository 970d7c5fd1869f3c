"""The operations of a trace as changes are tried on them: which changes of messages and meetings there are, and how
long the operations take then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import AdvisorError
from advisor.trace.profile import from_trace
from advisor_simulation.replay import conversion, rebuilding
from advisor_simulation.whatif.traced import background, loads, meetings, messages, pipelines, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from advisor.model.records import IntArray, Profile
    from advisor.trace.events import Trace
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

    @staticmethod
    def rewrites(word: tuple[str, str]) -> bool:
        """Return whether a change is one of messages or meetings, not of loads."""
        return word in REWRITES

    def changed(self, word: tuple[str, str], before: Run, after: Run | None, phases: set[int]) -> Traced | None:
        """Return the operations after a change, of messages and meetings in ``phases`` (all, if none) or of loads.

        Loads change as those of the run do from ``before`` to ``after``. None where the change is not about these
        operations; raises ``DeadlockError``.
        """
        rewrite = REWRITES.get(word)
        if rewrite is not None:
            made = rewrite(self.rows, self._chosen(before, phases))
        else:
            made = loads.carried(self.rows, self.site, before, after) if after is not None else None
        return self._with(made) if made is not None else None

    def faster(self, processor: float, network: float) -> Traced:
        """Return the operations on processors and a network so many times as fast."""
        return self._with(loads.faster(self.rows, processor, network))

    def profile(self) -> Profile:
        """Return the profile of the replayed operations."""
        program, mine = rows.changed_program(self.rows)
        ends = rows.replayed(self.rows).end_s[mine]
        return from_trace(rebuilding.trace(program, ends), program.title, "replay")

    def _chosen(self, run: Run, phases: set[int]) -> Mask:
        """Return which rows lie in some phases; all of them for none."""
        if not phases:
            return np.ones(len(self.rows), dtype=bool)
        numbers = np.array([phase.number for phase in run.phases] + [-1])
        found: Mask = np.isin(numbers[self.site[0]][self.rows.key.astype(np.int64)], list(phases))
        return found

    def _with(self, made: Rows) -> Traced:
        return replace(self, rows=made, time_s=rows.replayed(made).time_s)


def of_trace(run: Run, trace: Trace) -> Traced | None:
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
