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
from advisor_simulation.whatif.traced import background, collectives, loads, messages, pipelines, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from advisor.model.records import IntArray, Profile
    from advisor.trace.events import Trace
    from advisor_simulation.whatif.measured_run import MeasuredRun
    from advisor_simulation.whatif.traced.rows import ReplayRows

    Mask = npt.NDArray[np.bool_]
    Rewrite = Callable[[ReplayRows, Mask], ReplayRows | None]

#: Events of a trace whose operations are replayed, at most; larger ones are tried by phases alone.
MOST_EVENTS: Final = 2_000_000
#: By how much a replay of the unchanged operations may miss the measured time, as a share of it.
MISSED: Final = 0.02
#: Changes that are made on the operations of a trace.
REWRITES: Final[Mapping[tuple[str, str], Rewrite]] = {
    ("messages", "grouped"): messages.group_messages,
    ("messages", "collective"): messages.group_messages,
    ("access", "blocks"): messages.group_messages,
    ("send", "early"): messages.send_early,
    ("receive", "early"): messages.post_early,
    ("pipeline", "finer"): pipelines.refine_pipelines,
    ("messages", "overlapped"): background.hide_messages,
    ("remote", "prefetched"): background.hide_messages,
    ("alltoall", "overlapped"): background.hide_collectives,
    ("collectives", "nonblocking"): background.hide_collectives,
    ("barriers", "fuzzy"): background.hide_barriers,
    ("barriers", "removed"): collectives.drop_barriers,
    ("barriers", "pairwise"): collectives.drop_barriers,
    ("barriers", "relaxed"): collectives.drop_barriers,
    ("barriers", "merged"): collectives.merge_barriers,
    ("reductions", "fused"): collectives.merge_collectives,
    ("collectives", "grouped"): collectives.merge_collectives,
}


@dataclass(frozen=True, slots=True)
class TracedOperations:
    """The operations of a run: ``rows``, how long they take, and the phase and instance of each recorded one."""

    rows: ReplayRows
    time_s: float
    site: tuple[IntArray, IntArray]

    @staticmethod
    def is_rewrite(word: tuple[str, str]) -> bool:
        """Return whether a change is one of messages or meetings, not of loads."""
        return word in REWRITES

    def apply_change(
        self, word: tuple[str, str], before: MeasuredRun, after: MeasuredRun | None, phases: set[int]
    ) -> TracedOperations | None:
        """Return the operations after a change, of messages and meetings in ``phases`` (all, if none) or of loads.

        Loads change as those of the run do from ``before`` to ``after``. None where the change is not about these
        operations; raises ``DeadlockError``.
        """
        rewrite = REWRITES.get(word)
        if rewrite is not None:
            made = rewrite(self.rows, self._select_rows(before, phases))
        else:
            made = loads.carry_loads(self.rows, self.site, before, after) if after is not None else None
        return self._replay_rows(made) if made is not None else None

    def scale_speed(self, processor: float, network: float) -> TracedOperations:
        """Return the operations on processors and a network so many times as fast."""
        return self._replay_rows(loads.scale_speed(self.rows, processor, network))

    def build_profile(self) -> Profile:
        """Return the profile of the replayed operations."""
        program, mine = rows.to_program(self.rows)
        ends = rows.replay_rows(self.rows).end_s[mine]
        return from_trace(rebuilding.rebuild_trace(program, ends), program.title, "replay")

    def _select_rows(self, run: MeasuredRun, phases: set[int]) -> Mask:
        """Return which rows lie in some phases; all of them for none."""
        if not phases:
            return np.ones(len(self.rows), dtype=bool)
        numbers = np.array([phase.number for phase in run.phases] + [-1])
        found: Mask = np.isin(numbers[self.site[0]][self.rows.key.astype(np.int64)], list(phases))
        return found

    def _replay_rows(self, made: ReplayRows) -> TracedOperations:
        return replace(self, rows=made, time_s=rows.replay_rows(made).time_s)


def build_operations(run: MeasuredRun, trace: Trace) -> TracedOperations | None:
    """Return the operations of a trace, None where it leaves out messages or threads, or replays to another time."""
    if not 0 < len(trace.time_s) <= MOST_EVENTS or run.team.is_hybrid or trace.ranks != run.processors:
        return None
    try:
        program = conversion.convert_trace(trace)
        if program.left_out or not len(program.source):
            return None
        made = rows.build_rows(program)
        time_s = rows.replay_rows(made).time_s
    except AdvisorError:
        return None
    if abs(time_s - run.profile.actual_s) > MISSED * run.profile.actual_s:
        return None
    return TracedOperations(made, time_s, loads.find_places(made, run))
