"""Which communications of several devices are one operation, and until when each of them waits for the last one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.trace.devices.events import Activity, DeviceTrace, invert_order

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: A last start behind the first end contradicts a common clock: so many operations may, as their ends are not sharp.
_CONTRADICTIONS: Final = 0.05


class MatchedOperations(NamedTuple):
    """The communications of each operation: a table (operations, devices) for each channel, in ``members``."""

    members: tuple[IntArray, ...]
    unmatched: int

    def number_operations(self, activities: int) -> IntArray:
        """Return for each of so many activities the number of its operation, -1 for those of none."""
        group: IntArray = np.full(activities, -1, dtype=np.int64)
        count = 0
        for rows in self.members:
            group[rows] = np.arange(count, count + len(rows))[:, None]
            count += len(rows)
        return group


def match_operations(trace: DeviceTrace) -> MatchedOperations:
    """Return the operations of all channels; a channel whose devices recorded different numbers stays unmatched."""
    acts = trace.activities
    chosen = np.flatnonzero((acts.kind == Activity.COMMUNICATION) & (acts.channel >= 0))
    members: list[IntArray] = []
    unmatched = 0
    for channel in np.unique(acts.channel[chosen]).tolist():
        here = chosen[acts.channel[chosen] == channel]
        devices = np.unique(acts.device[here])
        rows = [here[acts.device[here] == device] for device in devices]
        counts = {len(row) for row in rows}
        if len(rows) > 1 and len(counts) == 1:
            members.append(np.stack(rows, axis=1))
        elif len(rows) > 1:
            unmatched += len(here)
    return MatchedOperations(tuple(members), unmatched)


def find_waiting(trace: DeviceTrace, operations: MatchedOperations) -> FloatArray:
    """Return for each activity until when it waits for the last device of its operation; its start for others."""
    acts = trace.activities
    until = acts.start_s.copy()
    for rows in operations.members:
        last = acts.start_s[rows].max(axis=1, keepdims=True)
        until[rows] = np.minimum(np.maximum(acts.start_s[rows], last), acts.end_s[rows])
    return until


def align_ranks(trace: DeviceTrace, operations: MatchedOperations) -> tuple[DeviceTrace, FloatArray]:
    """Return the trace on one clock, and how far each rank's clock was set back, seconds.

    No device leaves an operation before the last one has entered it. Where that fails, clocks differ; all devices leave
    an operation at nearly the same time, so the median difference of the ends is the difference of the clocks.
    """
    acts = trace.activities
    ranks = trace.device_ranks
    count = int(max((*ranks.tolist(), *trace.thread_ranks.tolist()), default=-1)) + 1
    shift = np.zeros(count)
    late = sum(int((acts.start_s[m].max(axis=1) > acts.end_s[m].min(axis=1)).sum()) for m in operations.members)
    total = sum(len(m) for m in operations.members)
    if not total or late <= _CONTRADICTIONS * total:
        return trace, shift
    known = {int(ranks[acts.device[operations.members[0][0, 0]]])}
    for rows in operations.members:
        of_rank = ranks[acts.device[rows[0]]]
        anchor = next((n for n, rank in enumerate(of_rank.tolist()) if rank in known), None)
        for column, rank in enumerate(of_rank.tolist()):
            if anchor is not None and rank not in known:
                difference = acts.end_s[rows[:, column]] - acts.end_s[rows[:, anchor]]
                shift[rank] = float(np.median(difference)) + shift[of_rank[anchor]]
                known.add(rank)
    return _shift_ranks(trace, shift), shift


def _shift_ranks(trace: DeviceTrace, shift: FloatArray) -> DeviceTrace:
    acts, calls = trace.activities, trace.calls
    of_device, of_call = shift[trace.device_ranks][acts.device], shift[trace.thread_ranks][calls.thread]
    order, ordered = (
        np.argsort(acts.start_s - of_device, kind="stable"),
        np.argsort(calls.start_s - of_call, kind="stable"),
    )
    call = invert_order(ordered)[acts.call]
    moved = replace(acts, start_s=acts.start_s - of_device, end_s=acts.end_s - of_device, call=call)
    sorted_acts = type(acts)(*(getattr(moved, name)[order] for name in acts.__dataclass_fields__))
    moved_calls = replace(calls, start_s=calls.start_s - of_call, end_s=calls.end_s - of_call)
    sorted_calls = type(calls)(*(getattr(moved_calls, name)[ordered] for name in calls.__dataclass_fields__))
    times = np.r_[sorted_acts.start_s, sorted_calls.start_s, sorted_acts.end_s, sorted_calls.end_s]
    return replace(
        trace, activities=sorted_acts, calls=sorted_calls, begin_s=float(times.min()), end_s=float(times.max())
    )
