"""A long trace in pieces that fit into memory: cut where all processes synchronize and nothing is under way.

Behind a synchronization of all processes nobody has anything to do with what came before, once every message and every
request has found its end. There the trace is cut, for each process at its own leave. The calls that are open there,
functions of the program, are entered again at the begin of the next window. Threads are cut at the moment at which
their process is, where they have nothing to do then. A trace whose messages never come out even is one window, unless
none of its receives was recorded, and so is one of a single process, which synchronizes with nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.traces.events import COLUMNS, RECEIVES, SENDS, Kind, Role, are
from advisor.traces.locations import masters, ranks
from advisor.traces.nesting import roles
from advisor.traces.spool import release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from advisor.model import FloatArray, IntArray
    from advisor.traces.events import Trace
    from advisor.traces.nesting import Calls

#: Events that are looked at together.
WINDOW_EVENTS = 1 << 18
#: Regions that are open at a cut, outermost first, for each location.
Stacks = tuple["IntArray", ...]

#: Events of one location looked at together while places to cut are sought.
_BLOCK = 1 << 17
_RECEIVING = (*RECEIVES, Kind.IRECV_POST)
#: What the first thread of a process is not in the middle of at a cut, and what the other threads may be in.
_TOGETHER = (Role.OMP_PARALLEL, Role.OMP_BARRIER, Role.OMP_WORK, Role.OMP_LOCK)
_NOTHING_TO_DO = (Role.ROOT,)


class UncleanError(Exception):
    """A trace was cut where something was still under way."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a trace as a trace of its own.

    ``reentered`` (locations,) counts the calls that were open before the window and begin it; ``begin_s`` and ``end_s``
    (locations,) are the times at which it begins and ends by each location's clock, -inf and inf for the run's ends.
    ``compiled`` says whether loops over its events are compiled.
    """

    trace: Trace
    reentered: IntArray
    begin_s: FloatArray
    end_s: FloatArray
    compiled: bool

    def continued(self, calls: Calls) -> npt.NDArray[np.bool_]:
        """Return which calls were entered before this window."""
        return calls.enter < (self.trace.first[:-1] + self.reentered)[calls.location]


class Windows:
    """A trace cut into windows of about ``events`` events."""

    def __init__(self, trace: Trace, events: int = WINDOW_EVENTS, *, compiled: bool = False) -> None:
        self._trace = trace
        self._compiled = compiled
        self._masters = masters(trace)
        self._edges = _edges(trace, events)

    def __len__(self) -> int:
        return len(self._edges) - 1

    def whole(self) -> Windows:
        """Return the same trace as one window."""
        return Windows(self._trace, len(self._trace.kind), compiled=self._compiled)

    def nothing_open(self) -> Stacks:
        """Return what is open at the begin of the trace."""
        return tuple(np.zeros(0, dtype=np.int64) for _ in self._trace.locations)

    def window(self, number: int, opened: Stacks) -> Window:
        """Return a window; ``opened`` are the calls that the one before left open."""
        low, high = self._edges[number], self._edges[number + 1]
        nowhere = np.full(len(low), np.inf)
        if len(self) == 1:
            return Window(self._trace, np.zeros(len(low), dtype=np.int64), -nowhere, nowhere, self._compiled)
        begin = self._trace.time_s[low[self._masters] - 1] if number else -nowhere
        end = self._trace.time_s[high[self._masters] - 1] if number + 1 < len(self) else nowhere
        reentered = np.array([len(stack) for stack in opened], dtype=np.int64)
        return Window(_part(self._trace, low, high, opened, begin), reentered, begin, end, self._compiled)


def has_calls(trace: Trace) -> bool:
    """Return whether any call was entered."""
    return any((trace.kind[block] == Kind.ENTER).any() for block in _blocks(0, len(trace.kind)))


def are_received(trace: Trace) -> bool:
    """Return whether any receive was recorded, or its post; messages without are under way nowhere."""
    return any(are(trace.kind[block], *_RECEIVING).any() for block in _blocks(0, len(trace.kind)))


def left_open(window: Window, calls: Calls) -> Stacks:
    """Return the regions that are open at the end of a window."""
    trace = window.trace
    stacks = []
    for begin, end in zip(trace.first[:-1], trace.first[1:], strict=True):
        call = int(calls.open_after[end - 1]) if end > begin else -1
        stack = []
        while call >= 0:
            stack.append(int(calls.region[call]))
            call = int(calls.parent[call])
        stacks.append(np.array(stack[::-1], dtype=np.int64))
    return tuple(stacks)


def _part(trace: Trace, low: IntArray, high: IntArray, opened: Stacks, begin: FloatArray) -> Trace:
    """Return the events from ``low`` to ``high`` of each location, behind enters of the calls that are open."""
    depth = np.array([len(stack) for stack in opened])
    first = np.r_[0, np.cumsum(depth + high - low)].astype(np.int64)
    entered: dict[str, Any] = {"kind": Kind.ENTER, "comm": -1, "partner": -1, "tag": 0, "size": -1, "request": 0}
    entered |= {"region": np.concatenate(opened), "time_s": np.repeat(begin, depth)}
    again = np.arange(depth.sum()) + np.repeat(first[:-1] - np.cumsum(depth) + depth, depth)
    edges = list(zip(depth.tolist(), low.tolist(), high.tolist(), strict=True))
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        column = getattr(trace, name)
        room = np.empty(depth.max(), dtype=column.dtype)
        columns[name] = np.concatenate([part for d, a, b in edges for part in (room[:d], column[a:b])])
        columns[name][again] = entered[name]
    release(getattr(trace, name) for name in COLUMNS)
    return replace(trace, first=first, **columns)


def _edges(trace: Trace, events: int) -> IntArray:
    """Return (windows + 1, locations): the events at which windows begin."""
    ends = np.stack((trace.first[:-1], trace.first[1:]))
    places = _cuts(trace) if len(trace.kind) > events else None
    if places is None:
        return ends
    before = (places - trace.first[:-1]).sum(axis=1)
    before = before[before < len(trace.kind)]
    cuts: list[int] = []
    done = 0
    while len(trace.kind) - done > events and len(before) and before[-1] > done:
        within = int(np.searchsorted(before, done + events, side="right")) - 1
        chosen = max(within, int(np.searchsorted(before, done, side="right")))
        cuts.append(chosen)
        done = int(before[chosen])
    return np.vstack((ends[:1], places[cuts], ends[1:]))


def _cuts(trace: Trace) -> IntArray | None:
    """Return (cuts, locations): the events at which all locations can be cut; None where there are none."""
    master = masters(trace)
    every = np.arange(len(master))
    full = _full_communicators(trace)
    holds, together = _are(trace, (Role.BARRIER, Role.ALL_TO_ALL)), _are(trace, _TOGETHER)
    found = [_places(trace, number, full, holds, together) for number in every[master == every].tolist()]
    common = _common(found, waiting=are_received(trace))
    if common is None:
        return None
    cuts = np.empty((len(common), len(master)), dtype=np.int64)
    cuts[:, master == every] = common
    good, counted = np.ones(len(cuts), dtype=bool), ~_are(trace, _NOTHING_TO_DO)
    for number in every[master != every].tolist():
        mine = slice(int(trace.first[number]), int(trace.first[number + 1]))
        moments = trace.time_s[cuts[:, master[number]] - 1]
        cuts[:, number] = mine.start + np.searchsorted(trace.time_s[mine], moments, side="right")
        good &= _have_nothing_to_do(trace, number, cuts[:, number], counted)
    return cuts[good] if good.any() else None


def _have_nothing_to_do(
    trace: Trace, number: int, places: IntArray, counted: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return whether a thread is in no call of ``counted`` regions, and has no threads, before each of the events."""
    idle = np.ones(len(places), dtype=bool)
    opened = 0
    for block in _blocks(int(trace.first[number]), int(trace.first[number + 1])):
        running = opened + np.cumsum(_opened(trace, block, counted), dtype=np.int64)
        here = (places > block.start) & (places <= block.stop)
        idle[here] = running[places[here] - 1 - block.start] == 0
        opened = int(running[-1])
        release((trace.kind, trace.region))
    return idle


def _opened(trace: Trace, block: slice, counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return by how many each event changes the number of open calls of ``counted`` regions, and teams of threads."""
    kind = trace.kind[block]
    counts = counted[trace.region[block]] if counted.any() else np.False_
    begun = ((kind == Kind.ENTER) & counts) | (kind == Kind.FORK)
    ended = ((kind == Kind.LEAVE) & counts) | (kind == Kind.JOIN)
    change: npt.NDArray[np.int32] = np.subtract(begun, ended, dtype=np.int32)
    return change


def _are(trace: Trace, wanted: Sequence[Role]) -> npt.NDArray[np.bool_]:
    """Return which regions are of such a role, by number; the last entry stands for none."""
    return np.isin(np.r_[roles(trace), Role.USER], wanted)


@dataclass(frozen=True, slots=True)
class _Places:
    """The collectives of all processes in one location: the event behind each, its communicator, and what is open.

    ``good`` is False where a request or a team is open, or the collective holds nobody up; ``sent`` counts messages
    that were sent less those that were received.
    """

    event: IntArray
    comm: IntArray
    good: npt.NDArray[np.bool_]
    sent: IntArray


def _places(
    trace: Trace,
    number: int,
    full: npt.NDArray[np.bool_],
    holds: npt.NDArray[np.bool_],
    together: npt.NDArray[np.bool_],
) -> _Places:
    """Return where a location could be cut.

    The last three say which communicators are of all processes, in which regions all wait for all, and which belong to
    a team of threads.
    """
    parts = []
    before = np.zeros(4, dtype=np.int64)
    for block in _blocks(int(trace.first[number]), int(trace.first[number + 1])):
        kind = trace.kind[block]
        at = np.flatnonzero(kind == Kind.COLLECTIVE)
        at = at[full[trace.comm[block][at]]]
        after = np.minimum(block.start + at + 1, trace.first[number + 1] - 1)
        leaves = (trace.kind[after] == Kind.LEAVE) & holds[trace.region[after]]
        changes = (_more(kind, SENDS, RECEIVES), _more(kind, (Kind.ISEND,), (Kind.ISEND_DONE,)),
                   _more(kind, (Kind.IRECV_POST,), (Kind.IRECV,)), _opened(trace, block, together))  # fmt: skip
        counts = before[:, None] + np.stack([_running(change, at) for change in changes])
        comm = trace.comm[block][at].astype(np.int64)
        closed = ~counts[1:, :-1].any(axis=0)
        parts.append(_Places(block.start + at + 2, comm, leaves & closed, counts[0, :-1]))
        release(getattr(trace, name) for name in ("kind", "comm", "region"))
        before = counts[:, -1]
    nothing = np.zeros(0, dtype=np.int64)
    parts.append(_Places(nothing, nothing, nothing.astype(bool), nothing))
    return _Places(*(np.concatenate([getattr(part, name) for part in parts]) for name in _Places.__slots__))


def _more(kind: npt.NDArray[np.uint8], these: Sequence[Kind], those: Sequence[Kind]) -> npt.NDArray[np.int32]:
    """Return 1 for events of ``these`` kinds, -1 for ``those``."""
    return np.subtract(are(kind, *these), are(kind, *those), dtype=np.int32)


def _running(change: npt.NDArray[np.int32], at: IntArray) -> IntArray:
    """Return the sums of ``change`` up to each of the places ``at``, which are in order, and that of all of it."""
    return np.cumsum(np.add.reduceat(np.append(change, np.int32(0)), np.r_[0, at + 1]), dtype=np.int64)


def _common(found: list[_Places], *, waiting: bool) -> IntArray | None:
    """Return (cuts, locations): the events at which all locations can be cut; None where there are none.

    ``waiting`` says whether messages are waited for.
    """
    if any(not np.array_equal(each.comm, found[0].comm) for each in found):
        return None
    good = np.logical_and.reduce([each.good for each in found])
    chosen = good & (sum(each.sent for each in found) == 0) if waiting else good
    return np.stack([each.event[chosen] for each in found], axis=1) if chosen.any() else None


def _full_communicators(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which communicators hold all processes, by number; the last entry stands for none."""
    everybody = set(ranks(trace).tolist())
    return np.array([set(members) == everybody for members in trace.communicators] + [False], dtype=bool)


def _blocks(start: int, end: int) -> Iterator[slice]:
    for begin in range(start, end, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, end))
