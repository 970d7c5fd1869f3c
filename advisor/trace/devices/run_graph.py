"""The graph of host calls, streams and communications that a run recorded, and how long it takes.

A host call starts when the call that ended last before it has ended, and after the host's own work between the two. An
activity starts when it was issued, when the one before it in its stream is over, and when another stream is on which it
waited; what remains is its own delay. A synchronous call ends when the activity it waited for has. A communication ends
when its last member has started and the data are moved. Without a change all recorded times come out again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.account import HOST_STRETCH_S
from advisor.trace.devices.collectives import match_operations
from advisor.trace.devices.events import DEVICE_CALLS, Activity, CallRole, DeviceTrace, find_previous_in_stream
from advisor.trace.devices.intervals import merge_intervals
from advisor.trace.devices.start_up import LOADING_RATIO, LOADING_S

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray

#: The calls of the graph: those that feed devices, and those that start them up.
GRAPH_CALLS: Final = (*DEVICE_CALLS, CallRole.START)
#: An activity that begins this soon after one of another stream ends was waiting for it.
_FOLLOWS_S: Final = 20e-6
#: Less than any recorded time.
INSTANT_S: Final = 1e-10
#: Recorded times may be wrong by this much.
_RESOLUTION_S: Final = 1e-6
#: A process that computed nothing for this share of a communication waited for it …
_AWAITED: Final = 0.5
#: … if at most this share is left when it goes on: with more left it goes on for another reason.
_LEFT: Final = 0.2


@dataclass(frozen=True, slots=True)
class RunGraph:
    """The graph in columns; calls are those to devices, -1 stands for none.

    Of calls: ``call`` the row in ``DeviceTrace.calls``, ``before`` the call that ended last before, ``gap_s`` the
    host's work since then, of which ``data_s`` loads data and ``launch_s`` prepares a launch, ``awaits`` the activity
    it waited for, ``after_s`` what it takes behind that. Of activities: ``issuer``, ``issue_s`` from its start on,
    ``previous`` in the stream, ``other`` in another one, ``delay_s`` and ``behind_s`` after the issue and after those,
    ``length_s`` without waiting for members, ``group`` of its communication.
    """

    call: IntArray
    call_start_s: FloatArray
    call_end_s: FloatArray
    role: IntArray
    before: IntArray
    gap_s: FloatArray
    data_s: FloatArray
    launch_s: FloatArray
    call_s: FloatArray
    awaits: IntArray
    after_s: FloatArray
    start_s: FloatArray
    end_s: FloatArray
    issuer: IntArray
    issue_s: FloatArray
    previous: IntArray
    other: IntArray
    delay_s: FloatArray
    behind_s: FloatArray
    length_s: FloatArray
    group: IntArray


def build_graph(trace: DeviceTrace, waiting_until_s: FloatArray) -> RunGraph:
    """Return the graph of a run."""
    trace = _end_awaited_communications(trace)
    acts, calls = trace.activities, trace.calls
    feeding = np.flatnonzero(np.isin(calls.role, GRAPH_CALLS))
    number: IntArray = np.full(len(calls.role) + 1, -1, dtype=np.int64)
    number[feeding] = np.arange(len(feeding))
    start, end = calls.start_s[feeding], calls.end_s[feeding]
    rank = trace.thread_ranks[calls.thread[feeding]]
    before = _find_previous_ends(start, end, rank)
    gap = start - np.where(before >= 0, end[before] if len(end) else 0.0, 0.0)
    data = overlap_with_data(trace, start - gap, start, rank)
    launch = np.where(gap - data <= HOST_STRETCH_S, np.maximum(gap - data, 0.0), 0.0)
    issuer = number[acts.call]
    issued = np.where(issuer >= 0, np.minimum(end[issuer], acts.start_s) if len(end) else 0.0, acts.start_s)
    issue = np.where(issuer >= 0, issued - (start[issuer] if len(start) else 0.0), issued)
    previous, other = _find_predecessors(trace, issued)
    follows = _are_on_host(trace) & ((previous >= 0) | (other >= 0))
    issued, issue = np.where(follows, -np.inf, issued), np.where(follows, -np.inf, issue)
    delay, behind = _split_delays(trace, issued, previous, other)
    act_rank = trace.device_ranks[acts.device]
    awaits, after = _find_awaited(calls.role[feeding], start, end, rank, acts.end_s, issued, act_rank)
    role = calls.role[feeding]
    group = _keep_sound_operations(trace, match_operations(trace).number_operations(len(acts.start_s)))
    begun = np.where(group >= 0, np.maximum(waiting_until_s, acts.start_s), acts.start_s)
    return RunGraph(
        feeding, start, end, role, before, gap, data, launch, end - start, awaits, after, acts.start_s, acts.end_s,
        issuer, issue, previous, other, delay, behind, acts.end_s - begun, group,
    )  # fmt: skip


def _find_previous_ends(start: FloatArray, end: FloatArray, rank: IntArray) -> IntArray:
    """Return for each call the one of its process that ended last before it began, -1 for none."""
    found: IntArray = np.full(len(start), -1, dtype=np.int64)
    for each in np.unique(rank).tolist():
        mine = np.flatnonzero(rank == each)
        over = np.maximum(end[mine], start[mine] + INSTANT_S)
        order = np.argsort(over, kind="stable")
        by_end = mine[order]
        place = np.searchsorted(over[order], start[mine], side="right") - 1
        found[mine] = np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
    return found


def overlap_with_data(trace: DeviceTrace, start: FloatArray, end: FloatArray, rank: IntArray) -> FloatArray:
    """Return the seconds between ``start`` and ``end`` in which the process loads data."""
    calls = trace.calls
    ranks = trace.thread_ranks
    loading = np.flatnonzero(np.isin(calls.role, (CallRole.LOAD_DATA, CallRole.INPUT_OUTPUT)))
    found = np.zeros(len(start))
    for each in np.unique(ranks[calls.thread[loading]]).tolist() if len(loading) else ():
        some = loading[ranks[calls.thread[loading]] == each]
        known = merge_intervals(calls.start_s[some], calls.end_s[some])
        mine = rank == each
        found[mine] = known.cover_until(end[mine]) - known.cover_until(start[mine])
    return found


def _find_predecessors(trace: DeviceTrace, issued: FloatArray) -> tuple[IntArray, IntArray]:
    """Return for each activity the one before it in its stream, and one of another stream that it waited for."""
    acts = trace.activities
    previous = find_previous_in_stream(acts)
    several = _are_on_host(trace) & (previous >= 0) & (acts.end_s[previous] > acts.start_s + _RESOLUTION_S)
    previous = np.where(several, -1, previous)  # threads of a host communicate concurrently
    ready = np.maximum(issued, np.where(previous >= 0, acts.end_s[previous], -np.inf))
    ready = np.minimum(ready, acts.start_s)
    other: IntArray = np.full(len(previous), -1, dtype=np.int64)
    late = np.flatnonzero(acts.start_s - ready > _FOLLOWS_S)
    ranks = trace.device_ranks[acts.device]
    for each in np.unique(ranks[late]).tolist():
        mine = np.flatnonzero(ranks == each)
        by_end = mine[np.argsort(acts.end_s[mine], kind="stable")]
        here = late[ranks[late] == each]
        place = np.searchsorted(acts.end_s[by_end], acts.start_s[here] + _RESOLUTION_S, side="right") - 1
        candidate = by_end[np.maximum(place, 0)]
        fits = (
            (place >= 0)
            & (acts.end_s[candidate] >= acts.start_s[here] - _FOLLOWS_S)
            & (acts.start_s[candidate] < acts.start_s[here])
        )
        other[here[fits]] = candidate[fits]
    hosted = _are_on_host(trace)
    other[hosted] = _find_host_causes(trace, previous)[hosted]
    return previous, other


def _are_on_host(trace: DeviceTrace) -> BoolArray:
    """Return which activities are a host's in place of a device."""
    return np.array([device.is_host for device in trace.devices], dtype=bool)[trace.activities.device]


def _end_awaited_communications(trace: DeviceTrace) -> DeviceTrace:
    """Return the trace in which a host's communication ends where its process computes again after waiting for it.

    The thread that communicates may note the end later than the one that waited goes on, above all where cores are
    short. It was waited for if the process computed nothing for most of it, and little of it is left.
    """
    acts = trace.activities
    hosted = _are_on_host(trace)
    end = acts.end_s.copy()
    for device in np.unique(acts.device[hosted]).tolist():
        mine = hosted & (acts.device == device)
        computing = np.flatnonzero(mine & (acts.kind == Activity.COMPUTE))
        sends = np.flatnonzero(mine & (acts.kind == Activity.COMMUNICATION))
        if not len(computing):
            continue
        starts, reached = acts.start_s[computing], np.maximum.accumulate(acts.end_s[computing])
        length = end[sends] - acts.start_s[sends]
        first = np.searchsorted(starts, end[sends] - _LEFT * length)  # the first that begins in the rest of it
        begun = np.where(first < len(starts), starts[np.minimum(first, len(starts) - 1)], np.inf)
        before = np.where(first > 0, reached[first - 1], -np.inf)
        over = (begun < end[sends]) & (begun - np.maximum(before, acts.start_s[sends]) >= _AWAITED * length)
        end[sends[over]] = begun[over]
    return replace(trace, activities=replace(acts, end_s=end))


def _keep_sound_operations(trace: DeviceTrace, group: IntArray) -> IntArray:
    """Return the operations without those that a member leaves before another enters: they are matched wrongly.

    Several threads of a process communicate concurrently, so their order may differ between processes.
    """
    acts = trace.activities
    members = group >= 0
    last, first = np.full(int(group.max(initial=-1)) + 1, -np.inf), np.full(int(group.max(initial=-1)) + 1, np.inf)
    np.maximum.at(last, group[members], acts.start_s[members])
    np.minimum.at(first, group[members], acts.end_s[members])
    wrong = np.append(last > first, False)
    return np.where(wrong[group], -1, group)


def _find_host_causes(trace: DeviceTrace, previous: IntArray) -> IntArray:
    """Return for each activity of a host the one of the other kind it follows, -1 for none.

    Communication starts behind the computation that ended last. Computation waits for communication that ended after
    the computation before it.
    """
    acts = trace.activities
    found: IntArray = np.full(len(previous), -1, dtype=np.int64)
    for device in np.unique(acts.device).tolist():
        for kind in (Activity.COMPUTE, Activity.COMMUNICATION):
            mine = np.flatnonzero((acts.device == device) & (acts.kind == kind))
            others = np.flatnonzero((acts.device == device) & (acts.kind != kind))
            others = others[np.argsort(acts.end_s[others], kind="stable")]
            place = np.searchsorted(acts.end_s[others], acts.start_s[mine] + _RESOLUTION_S, side="right") - 1
            if len(others):
                found[mine] = np.where(place >= 0, others[np.maximum(place, 0)], -1)
    waited = acts.end_s[found] > np.where(previous >= 0, acts.end_s[previous], -np.inf)
    return np.where((acts.kind == Activity.COMMUNICATION) | waited, found, -1)


def _split_delays(
    trace: DeviceTrace, issued: FloatArray, previous: IntArray, other: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return how long each activity begins after its issue, and after the activities before it, seconds.

    What came last has its recorded delay. After the other it would have begun as soon as is usual in this run, but not
    later than it did.
    """
    start, end = trace.activities.start_s, trace.activities.end_s
    done = np.maximum(np.where(previous >= 0, end[previous], -np.inf), np.where(other >= 0, end[other], -np.inf))
    by_issue = issued >= done
    after_issue, after_end = start - issued, start - done
    close = ~by_issue & (after_end < _FOLLOWS_S)
    usual_issue = float(np.median(after_issue[by_issue])) if by_issue.any() else 0.0
    usual_end = float(np.median(after_end[close])) if close.any() else 0.0
    delay = np.where(by_issue, after_issue, np.minimum(after_issue, usual_issue))
    behind = np.where(by_issue, np.minimum(np.where(np.isinf(after_end), 0.0, after_end), usual_end), after_end)
    return delay, behind


def _find_awaited(
    role: IntArray, start: FloatArray, end: FloatArray, rank: IntArray,
    act_end: FloatArray, issued: FloatArray, act_rank: IntArray,
) -> tuple[IntArray, FloatArray]:  # fmt: skip
    """Return which activity each call waited for, the last that ended inside it, and how long it went on after that."""
    awaits: IntArray = np.full(len(start), -1, dtype=np.int64)
    after = end - start
    launches = role == CallRole.LAUNCH
    usual = float(np.median(after[launches])) if launches.any() else 0.0
    full = launches & (after >= max(LOADING_S, LOADING_RATIO * usual))  # a queue has room for about a thousand launches
    blocking = np.isin(role, (CallRole.SYNCHRONIZE, CallRole.COPY, CallRole.ALLOCATE)) | full
    for each in np.unique(rank).tolist():
        acts = np.flatnonzero(act_rank == each)
        if not len(acts):  # a rank that calls the runtime and runs nothing on a device waits for none
            continue
        by_end = acts[np.argsort(act_end[acts], kind="stable")]
        mine = np.flatnonzero((rank == each) & blocking)
        place = np.searchsorted(act_end[by_end], end[mine], side="right") - 1
        some = place >= 0
        last = by_end[np.maximum(place, 0)]
        inside = some & (act_end[last] > start[mine]) & (issued[last] <= end[mine])
        inside &= (role[mine] == CallRole.SYNCHRONIZE) | (end[mine] - act_end[last] < 0.5 * (end[mine] - start[mine]))
        awaits[mine[inside]] = last[inside]
        after[mine[inside]] = (end[mine] - act_end[last])[inside]
    return awaits, after
