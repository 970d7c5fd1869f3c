"""What of a run's host calls is start-up: code loaded at the first launch of a kernel, and graphs being captured.

Runtimes load the code of a kernel when it is first launched, so that this launch takes as long as a thousand others.
While a graph is captured calls return at once and the device does nothing. Neither is a cost of launching.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.events import Activity, CallRole, DeviceTrace, HostCalls, invert_order
from advisor.trace.devices.naming import find_named_calls

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: A first launch that takes as long loads code; others wait for room in the queue at most while the device computes.
LOADING_S: Final = 200e-6
#: … and so many times as long as launches usually do.
LOADING_RATIO: Final = 10.0
CAPTURE: Final = "graph capture"


def mark_start_up(trace: DeviceTrace) -> DeviceTrace:
    """Return the trace with first launches that load code, and captures of graphs, as calls of start-up."""
    role = trace.calls.role.copy()
    role[_find_loading(trace)] = CallRole.START
    calls = replace(trace.calls, role=role)
    return _insert_captures(replace(trace, calls=calls))


def _find_loading(trace: DeviceTrace) -> IntArray:
    """Return the launches that load code: the first of a kernel in its process, and far longer than is usual."""
    acts, calls = trace.activities, trace.calls
    kernels: IntArray = np.flatnonzero((acts.kind != Activity.COPY) & (acts.call >= 0))
    kernels = kernels[calls.role[acts.call[kernels]] == CallRole.LAUNCH]
    if not len(kernels):
        return kernels
    issuer = acts.call[kernels]
    order = np.lexsort((calls.start_s[issuer], acts.name[kernels], acts.device[kernels]))
    device, name = acts.device[kernels][order], acts.name[kernels][order]
    first = np.r_[True, (device[1:] != device[:-1]) | (name[1:] != name[:-1])]
    candidates: IntArray = np.unique(issuer[order][first])
    length = calls.end_s - calls.start_s
    usual = float(np.median(length[np.unique(issuer)]))
    found: IntArray = candidates[length[candidates] >= max(LOADING_S, LOADING_RATIO * usual)]
    return found


def _insert_captures(trace: DeviceTrace) -> DeviceTrace:
    """Return the trace with a call around each capture of a graph, and the calls in it as start-up."""
    calls = trace.calls
    begins = find_named_calls(trace, "StreamBeginCapture")
    ends = find_named_calls(trace, "StreamEndCapture")
    spans = []
    for begin in begins.tolist():
        after = ends[(calls.thread[ends] == calls.thread[begin]) & (calls.start_s[ends] >= calls.end_s[begin])]
        if len(after):
            spans.append((begin, int(after[0])))
    if not spans:
        return trace
    role = calls.role.copy()
    for begin, end in spans:
        inside = (calls.start_s >= calls.start_s[begin]) & (calls.end_s <= calls.end_s[end])
        role[inside & (calls.thread == calls.thread[begin])] = CallRole.START
    opened, closed = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    columns = (
        np.r_[calls.start_s, calls.start_s[opened]], np.r_[calls.end_s, calls.end_s[closed]],
        np.r_[calls.thread, calls.thread[opened]], np.r_[role, np.full(len(opened), CallRole.START)],
        np.r_[calls.name, np.full(len(opened), len(trace.names))],
    )  # fmt: skip
    order = np.lexsort((-columns[1], columns[0]))
    acts = replace(trace.activities, call=invert_order(order)[trace.activities.call])
    changed = HostCalls(*(column[order] for column in columns))
    return replace(trace, calls=changed, activities=acts, names=(*trace.names, CAPTURE))
