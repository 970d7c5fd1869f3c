"""The times of a run's graph, step by step: one loop for lists and for arrays, which numba compiles."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Rows = Sequence[int]
    Seconds = Sequence[float]
    Times = MutableSequence[float]


def walk_steps(
    kinds: Rows, index: Rows, before: Rows, awaits: Rows, issuer: Rows, previous: Rows, other: Rows, group: Rows,
    gap: Seconds, call_s: Seconds, after: Seconds, behind: Seconds, length: Seconds, issue: Seconds,
    call_start: Times, call_end: Times, done: Times, last_start: Times,
) -> None:  # fmt: skip
    """Fill the times; columns as in ``RunGraph``, ``issue`` is from the start of the issuer to the earliest start.

    Steps are of the kinds 0 end of an activity, 1 end of a call, 2 start of a call, 3 start of an activity. A cause of
    -1 is the last of the times, which is there for that: 0 for calls, minus infinity for activities.
    """
    for kind, n in zip(kinds, index):  # noqa: B905 - numba knows no strict
        if kind == 2:
            call_start[n] = begin = gap[n] + call_end[before[n]]
            call_end[n] = begin + call_s[n]
        elif kind == 3:
            ready = issue[n] + call_start[issuer[n]]
            free = done[previous[n]] + behind[n]
            if free > ready:
                ready = free
            free = done[other[n]] + behind[n]
            if free > ready:
                ready = free
            if group[n] < 0:
                done[n] = ready + length[n]
            elif ready > last_start[group[n]]:
                last_start[group[n]] = ready
        elif kind == 0:
            if group[n] >= 0:
                done[n] = last_start[group[n]] + length[n]
        elif awaits[n] >= 0:
            call_end[n] = max(call_start[n], done[awaits[n]]) + after[n]
