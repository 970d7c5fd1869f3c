"""The times of a run's graph, step by step: one loop for lists and for arrays, which numba compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence

    Rows = Sequence[int]
    Seconds = Sequence[float]
    Times = MutableSequence[float]


def walk_steps(
    kinds: Rows, index: Rows, before: Rows, awaits: Rows, issuer: Rows, previous: Rows, other: Rows, group: Rows,
    gap: Seconds, call_s: Seconds, after: Seconds, issue: Seconds, delay: Seconds, behind: Seconds, length: Seconds,
    call_start: Times, call_end: Times, begun: Times, done: Times, last_start: Times,
) -> float:  # fmt: skip
    """Return when the last call or activity ends; columns as in ``RunGraph``, times are filled.

    Steps are of the kinds 0 end of an activity, 1 end of a call, 2 start of a call, 3 start of an activity.
    """
    latest = 0.0
    for step in range(len(kinds)):
        kind, n = kinds[step], index[step]
        if kind == 3:
            ready = issue[n] + delay[n]
            if issuer[n] >= 0:
                ready += call_start[issuer[n]]
            if previous[n] >= 0 and done[previous[n]] + behind[n] > ready:
                ready = done[previous[n]] + behind[n]
            if other[n] >= 0 and done[other[n]] + behind[n] > ready:
                ready = done[other[n]] + behind[n]
            begun[n] = ready
            if group[n] >= 0 and ready > last_start[group[n]]:
                last_start[group[n]] = ready
        elif kind == 0:
            done[n] = (last_start[group[n]] if group[n] >= 0 else begun[n]) + length[n]
            latest = max(latest, done[n])
        elif kind == 2:
            call_start[n] = gap[n]
            if before[n] >= 0:
                call_start[n] += call_end[before[n]]
        else:
            if awaits[n] >= 0:
                call_end[n] = max(call_start[n], done[awaits[n]]) + after[n]
            else:
                call_end[n] = call_start[n] + call_s[n]
            latest = max(latest, call_end[n])
    return latest
