"""The times of a whole trace on one clock, for what needs events and not shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.trace import clocks, locations, matching, nesting
from advisor.trace.clock_constraints import are_clocks_consistent, collect_constraints

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor.trace.events import Trace


def align_times(trace: Trace) -> FloatArray:
    """Return the time of every event from 0 on, seconds on one clock, that never step back on a process."""
    time_s = np.array(trace.time_s if trace.one_clock else _correct_clocks(trace))
    for low, high in zip(trace.first[:-1].tolist(), trace.first[1:].tolist(), strict=True):
        np.maximum.accumulate(time_s[low:high], out=time_s[low:high])
    beginnings = trace.first[:-1][np.diff(trace.first) > 0]
    result: FloatArray = time_s - time_s[beginnings].min(initial=np.inf) if len(time_s) else time_s
    return result


def _correct_clocks(trace: Trace) -> FloatArray:
    """Return the times of all events on one clock, seconds; those of clocks that contradict nothing as they are."""
    calls = nesting.pair_calls(trace)
    joint, messages = matching.match_collectives(trace, calls), matching.match_messages(trace, calls)
    if are_clocks_consistent(calls, joint, messages, trace.ticks_s):
        return trace.time_s
    found = collect_constraints(trace, calls, joint, messages)
    correction = clocks.align_clocks(found, locations.hosts_of_processes(trace), trace.ticks_s)
    correction = clocks.place_islands(trace, np.full(len(trace.locations), -np.inf), correction)
    return clocks.correct_times(trace, correction)
