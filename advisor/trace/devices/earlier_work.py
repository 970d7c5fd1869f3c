"""Waits at the beginning of a recording for what was issued before it.

A recording that starts in the middle of a run finds devices busy with what is not in it. The first wait for them tells
when that is over: until then nothing is known of the devices, and to drop the wait wins nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.records import Note
from advisor.model.units import format_seconds
from advisor.trace.devices.account import LATENCY_S
from advisor.trace.devices.events import CallRole, DeviceTrace

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: Calls that need the context of a device, and create it where there is none; others do not tell whether there is one.
_NEED_CONTEXT = (CallRole.SYNCHRONIZE, CallRole.LAUNCH, CallRole.COPY, CallRole.ALLOCATE)


def leave_out_earlier_work(trace: DeviceTrace) -> DeviceTrace:
    """Return the trace from where all processes had waited for what they issued before the recording, else as it is.

    A first call may take as long because it sets the device up: it is part of the run, but waits for nothing.
    """
    waits = {rank: _find_early_waits(trace, rank) for rank in sorted({device.rank for device in trace.devices})}
    over = []
    role = trace.calls.role.copy()
    for rank, found in waits.items():
        earlier = [wait for wait in found.tolist() if _has_context(trace, rank, wait)]
        over.append(float(trace.calls.end_s[earlier].max()) if earlier else trace.begin_s)
        role[np.setdiff1d(found, earlier)] = CallRole.RUNTIME
    trace = replace(trace, calls=replace(trace.calls, role=role))
    return _begin_at(trace, min(over)) if over and min(over) > trace.begin_s else trace


def _find_early_waits(trace: DeviceTrace, rank: int) -> IntArray:
    """Return the long waits of a process that end before it issued anything that could be waited for."""
    acts, calls = trace.activities, trace.calls
    mine = trace.thread_ranks[calls.thread] == rank
    issues = mine & np.isin(calls.role, (CallRole.LAUNCH, CallRole.COPY))
    own = trace.device_ranks[acts.device] == rank
    begun = acts.start_s[own & (acts.call < 0)]
    issued = min(calls.start_s[issues].min(initial=np.inf), begun.min(initial=np.inf), acts.start_s[own].min())
    waits = mine & (calls.role == CallRole.SYNCHRONIZE) & (calls.end_s <= issued)
    return np.flatnonzero(waits & (calls.end_s - calls.start_s > LATENCY_S))


def _has_context(trace: DeviceTrace, rank: int, wait: int) -> bool:
    """Return whether a call of the process returned before the wait as fast as only one with a device set up does."""
    calls = trace.calls
    before = (calls.end_s <= calls.start_s[wait]) & (trace.thread_ranks[calls.thread] == rank)
    fast = calls.end_s - calls.start_s <= LATENCY_S
    return bool((before & fast & np.isin(calls.role, _NEED_CONTEXT)).any())


def _begin_at(trace: DeviceTrace, begin_s: float) -> DeviceTrace:
    """Return the trace from ``begin_s`` on, by which all activities are still to come."""
    calls = trace.calls
    kept = calls.end_s > begin_s
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    acts = trace.activities
    text = f"the first {format_seconds(begin_s)} are left out: the host waited for what it issued before the recording"
    return replace(
        trace,
        notes=(*trace.notes, Note("earlier work", text)),
        calls=replace(
            calls,
            start_s=np.maximum(calls.start_s[kept] - begin_s, 0.0),
            end_s=calls.end_s[kept] - begin_s,
            thread=calls.thread[kept],
            role=calls.role[kept],
            name=calls.name[kept],
        ),
        activities=replace(acts, start_s=acts.start_s - begin_s, end_s=acts.end_s - begin_s, call=number[acts.call]),
        marks_s=trace.marks_s[trace.marks_s >= begin_s] - begin_s,
        begin_s=0.0,
        end_s=trace.end_s - begin_s,
    )
