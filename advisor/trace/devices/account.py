"""Every second of every device by its level: what the device did, or what its host did while it was idle.

The run is cut at every change of a device's state and of its host's. Each piece belongs to exactly one level, so a
device's levels add up to the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace
from advisor.trace.devices.host_work import HostView
from advisor.trace.devices.intervals import Intervals, merge_intervals

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray
    from advisor.trace.devices.collectives import MatchedOperations

#: The levels in their order: what the seconds of a piece belong to.
LEVELS: Final = (
    "compute", "copies", "communication", "imbalance", "launches", "synchronizations", "data", "host", "startup",
)  # fmt: skip
(COMPUTE, COPIES, COMMUNICATION, IMBALANCE, LAUNCHES, SYNCHRONIZATIONS, DATA, HOST, STARTUP) = range(9)
#: The level of a device's idle time by what its host does meanwhile.
_LEVEL_OF_ROLE: Final = {
    CallRole.SYNCHRONIZE: SYNCHRONIZATIONS, CallRole.LAUNCH: LAUNCHES, CallRole.COPY: COPIES, CallRole.ALLOCATE: HOST,
    CallRole.RUNTIME: LAUNCHES, CallRole.START: STARTUP, CallRole.COMMUNICATE: COMMUNICATION,
    CallRole.INPUT_OUTPUT: DATA, CallRole.LOAD_DATA: DATA,
}  # fmt: skip
#: Calls that begin or end the use of a device, where they come before its first activity or behind its last.
_FEEDING: Final = (CallRole.LAUNCH, CallRole.COPY, CallRole.ALLOCATE, CallRole.RUNTIME)
#: A host that issues nothing for longer works for itself; below it prepares the next launch.
HOST_STRETCH_S: Final = 250e-6
#: What was issued begins within this time where its stream is free: later it waits for something that is not recorded.
LATENCY_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class TimePieces:
    """Columns of one length: pieces of the time of the devices, by level and by the name of what they are spent on.

    ``name`` indexes ``DeviceTrace.names``, -1 for none: the activity, or the host's call while the device is idle.
    Where the host is in no call, or has issued what comes next, it is the activity that ends the idle time.
    """

    device: IntArray
    start_s: FloatArray
    end_s: FloatArray
    level: IntArray
    name: IntArray

    @property
    def seconds(self) -> FloatArray:
        """How long each piece is."""
        return self.end_s - self.start_s


def attribute_device_time(trace: DeviceTrace, waiting_until_s: FloatArray) -> TimePieces:
    """Return the time of all devices in pieces.

    ``waiting_until_s`` tells for each activity until when a communication waits for other devices (its start for
    others).
    """
    hosts = {rank: HostView(trace, rank) for rank in sorted({device.rank for device in trace.devices})}
    parts = [
        _attribute_device(trace, number, hosts[device.rank], waiting_until_s)
        for number, device in enumerate(trace.devices)
    ]
    columns = zip(*parts, strict=True)
    return TimePieces(*(np.concatenate(column) for column in columns))


def _attribute_device(
    trace: DeviceTrace, number: int, host: HostView, waiting_until_s: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, IntArray, IntArray]:
    acts = trace.activities
    mine = np.flatnonzero(acts.device == number)
    start, end, kind = acts.start_s[mine], acts.end_s[mine], acts.kind[mine]
    states = [merge_intervals(start[kind == each], end[kind == each]) for each in Activity]
    waits = kind == Activity.COMMUNICATION
    waiting = merge_intervals(start[waits], np.minimum(waiting_until_s[mine][waits], end[waits]))
    moving = merge_intervals(np.minimum(waiting_until_s[mine][waits], end[waits]), end[waits])
    idle = _find_idle(trace, merge_intervals(start, end))
    edges = np.r_[trace.begin_s, trace.end_s, *(edge for each in (*states, waiting, moving, idle) for edge in each)]
    owners = _find_owners(trace, mine, idle, host)
    edges = np.unique(np.r_[edges, owners.issued_s, host.edges_s])
    edges = edges[(edges >= trace.begin_s) & (edges <= trace.end_s)]
    moment = (edges[:-1] + edges[1:]) / 2
    level: IntArray = np.full(len(moment), -1, dtype=np.int64)
    inside = [state.hold_moments(moment) for state in states]
    level[inside[Activity.COPY]] = COPIES
    late = inside[Activity.COMMUNICATION]
    level[late] = np.where(
        waiting.hold_moments(moment[late]) & ~moving.hold_moments(moment[late]), IMBALANCE, COMMUNICATION
    )
    level[inside[Activity.COMPUTE]] = COMPUTE
    name = _name_activities(trace, mine, moment, level)
    free = np.flatnonzero(level < 0)
    level[free], name[free] = _explain_idle(trace, mine, moment[free], idle, owners, host)
    return np.full(len(moment), number), edges[:-1], edges[1:], level, name


def _find_idle(trace: DeviceTrace, busy: Intervals) -> Intervals:
    start = np.r_[trace.begin_s, busy.end_s]
    end = np.r_[busy.start_s, trace.end_s]
    some = end > start
    return Intervals(start[some], end[some])


@dataclass(frozen=True, slots=True)
class _Owners:
    """Of each idle interval: the host thread that ends it, when it has issued what ends it (inf: nothing does), whether
    the host waited for the device when it began, and the name of the activity that ends it (-1 for none).
    """

    thread: IntArray
    issued_s: FloatArray
    drained: BoolArray
    next_name: IntArray


def _find_owners(trace: DeviceTrace, mine: IntArray, idle: Intervals, host: HostView) -> _Owners:
    """Return who ends each idle interval, and how."""
    acts, calls = trace.activities, trace.calls
    start = acts.start_s[mine]
    place = np.searchsorted(start, idle.end_s, side="left")
    has_next = place < len(mine)
    issuer = np.full(len(idle.end_s), -1, dtype=np.int64)
    issuer[has_next] = acts.call[mine[place[has_next]]]
    last = acts.call[mine][acts.call[mine] >= 0]
    usual = int(calls.thread[last[-1]]) if len(last) else host.main_thread
    thread = np.full(len(issuer), usual, dtype=np.int64)
    issued = np.full(len(issuer), np.inf)
    known = issuer >= 0
    thread[known] = calls.thread[issuer[known]]
    issued[known] = calls.end_s[issuer[known]]
    next_name: IntArray = np.full(len(place), -1, dtype=np.int64)
    next_name[has_next] = acts.name[mine[place[has_next]]]
    return _Owners(thread, issued, host.is_waiting_on(thread, idle.start_s), next_name)


def _name_activities(trace: DeviceTrace, mine: IntArray, moment: FloatArray, level: IntArray) -> IntArray:
    """Return the name of the activity that began last before each moment in its level, -1 where the device is idle."""
    acts = trace.activities
    name: IntArray = np.full(len(moment), -1, dtype=np.int64)
    kinds = {COMPUTE: Activity.COMPUTE, COPIES: Activity.COPY}
    kinds |= dict.fromkeys((COMMUNICATION, IMBALANCE), Activity.COMMUNICATION)
    for each, kind in kinds.items():
        here = np.flatnonzero(level == each)
        some = mine[acts.kind[mine] == kind]
        if len(here) and len(some):
            place = np.searchsorted(acts.start_s[some], moment[here], side="right") - 1
            name[here] = acts.name[some[np.maximum(place, 0)]]
    return name


def _is_outside(trace: DeviceTrace, mine: IntArray, moment: FloatArray) -> BoolArray:
    """Return which moments lie before a device's first activity or behind its last one."""
    if not len(mine):
        return np.ones(len(moment), dtype=bool)
    acts = trace.activities
    outside: BoolArray = (moment < acts.start_s[mine].min()) | (moment > acts.end_s[mine].max())
    return outside


def _explain_idle(
    trace: DeviceTrace, mine: IntArray, moment: FloatArray, idle: Intervals, owners: _Owners, host: HostView
) -> tuple[IntArray, IntArray]:
    """Return level and name of moments at which a device is idle."""
    interval = np.searchsorted(idle.start_s, moment, side="right") - 1
    thread, issued = owners.thread[interval], owners.issued_s[interval]
    call = host.find_calls(thread, moment)
    role = np.where(call >= 0, trace.calls.role[call] if len(trace.calls.role) else -1, CallRole.WORK)
    level: IntArray = np.full(len(moment), HOST, dtype=np.int64)
    named = role != CallRole.WORK
    for each, belongs in _LEVEL_OF_ROLE.items():
        level[role == each] = belongs
    stretch = host.stretch_lengths(thread, moment)
    free = ~named
    level[free & (stretch <= HOST_STRETCH_S)] = LAUNCHES
    outside = (moment < host.first_activity_s) | (moment > host.last_activity_s)
    level[outside & free] = STARTUP
    level[_is_outside(trace, mine, moment) & np.isin(role, _FEEDING)] = STARTUP
    queued = moment >= issued
    waited = idle.end_s[interval] - np.maximum(issued, idle.start_s[interval])
    level[queued] = np.where(waited <= LATENCY_S, LAUNCHES, STARTUP)[queued]
    level[(level == LAUNCHES) & owners.drained[interval]] = SYNCHRONIZATIONS
    next_name = owners.next_name[interval]
    name: IntArray = np.where(call >= 0, trace.calls.name[call] if len(trace.calls.name) else -1, next_name)
    return level, np.where(queued, next_name, name)


def share_exposure(trace: DeviceTrace, pieces: TimePieces, operations: MatchedOperations) -> TimePieces:
    """Return the pieces with communication that other members of the operation could cover counted as imbalance.

    What of an operation every member leaves uncovered is its cost. What one leaves uncovered beyond that comes from the
    others' being later: the first of these seconds count as imbalance. Pieces are cut where that ends.
    """
    acts = trace.activities
    group = operations.number_operations(len(acts.start_s))
    member = _find_members(trace, pieces, group)
    some = np.flatnonzero(member >= 0)
    some = some[np.lexsort((pieces.start_s[some], member[some]))]
    if not len(some):
        return pieces
    exposed = sum_by_group(member[some], pieces.seconds[some], len(group))
    least = np.full(int(group.max(initial=-1)) + 1, np.inf)
    sends = np.flatnonzero(group >= 0)
    np.minimum.at(least, group[sends], exposed[sends])
    excess = exposed - np.where(group >= 0, least[group], exposed)
    ends = np.cumsum(pieces.seconds[some])
    first = np.r_[True, member[some][1:] != member[some][:-1]]
    base = np.maximum.accumulate(np.where(first, ends - pieces.seconds[some], 0.0))
    before = ends - pieces.seconds[some] - base
    late = np.clip(excess[member[some]] - before, 0.0, pieces.seconds[some])
    return _cut_pieces(pieces, some, late)


def _find_members(trace: DeviceTrace, pieces: TimePieces, group: IntArray) -> IntArray:
    """Return the matched communication of which each piece is an uncovered part, -1 for other pieces."""
    acts = trace.activities
    member: IntArray = np.full(len(pieces.level), -1, dtype=np.int64)
    for device in range(len(trace.devices)):
        sends = np.flatnonzero((acts.device == device) & (acts.kind == Activity.COMMUNICATION))
        here = np.flatnonzero((pieces.device == device) & (pieces.level == COMMUNICATION))
        if len(sends) and len(here):
            moment = (pieces.start_s[here] + pieces.end_s[here]) / 2
            place = np.searchsorted(acts.start_s[sends], moment, side="right") - 1
            found = sends[np.maximum(place, 0)]
            inside = (place >= 0) & (moment < acts.end_s[found]) & (group[found] >= 0)
            member[here[inside]] = found[inside]
    return member


def _cut_pieces(pieces: TimePieces, some: IntArray, late: FloatArray) -> TimePieces:
    """Return the pieces with the first ``late`` seconds of some of them as pieces of imbalance."""
    cut = pieces.start_s[some] + late
    start, level = pieces.start_s.copy(), pieces.level.copy()
    whole = cut >= pieces.end_s[some]
    level[some[whole]] = IMBALANCE
    split = np.flatnonzero((late > 0) & ~whole)
    start[some[split]] = cut[split]
    more = some[split]
    return TimePieces(
        np.r_[pieces.device, pieces.device[more]],
        np.r_[start, pieces.start_s[more]],
        np.r_[pieces.end_s, cut[split]],
        np.r_[level, np.full(len(more), IMBALANCE)],
        np.r_[pieces.name, pieces.name[more]],
    )


def sum_levels(trace: DeviceTrace, pieces: TimePieces) -> dict[str, FloatArray]:
    """Return the seconds of each level by device."""
    count = len(trace.devices)
    table = sum_by_group(pieces.level * count + pieces.device, pieces.seconds, len(LEVELS) * count)
    return {level: table[n * count : (n + 1) * count] for n, level in enumerate(LEVELS)}


def sum_iterations(trace: DeviceTrace, pieces: TimePieces) -> dict[str, FloatArray]:
    """Return the seconds of each level by device and iteration; a piece is in the iteration of its middle."""
    count = len(trace.marks_s) - 1
    if count < 1:
        return {}
    at = np.searchsorted(trace.marks_s, (pieces.start_s + pieces.end_s) / 2, side="right") - 1
    inside = (at >= 0) & (at < count)
    devices = len(trace.devices)
    key = (pieces.level[inside] * devices + pieces.device[inside]) * count + at[inside]
    table = sum_by_group(key, pieces.seconds[inside], len(LEVELS) * devices * count)
    shaped = table.reshape(len(LEVELS), devices, count)
    return {level: shaped[n] for n, level in enumerate(LEVELS)}


def iterate_causes(trace: DeviceTrace, pieces: TimePieces) -> Iterator[tuple[str, str, float, int]]:
    """Yield level, name, seconds (a mean over the devices) and number of the pieces of one name, the largest first."""
    names = len(trace.names) + 1
    key = pieces.level * names + pieces.name + 1
    seconds, count = np.bincount(key, weights=pieces.seconds), np.bincount(key)
    for each in np.argsort(-seconds, kind="stable").tolist():
        if seconds[each] <= 0:
            return
        level, name = divmod(each, names)
        words = trace.names[name - 1] if name else "nothing that follows"
        yield LEVELS[level], words, float(seconds[each]) / len(trace.devices), int(count[each])
