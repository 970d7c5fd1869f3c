"""Processors of threads: those that come one after the other, or while another only waits for them, are one.

A program that creates two threads in each of a thousand steps uses two processors, and no two thousand. So does one
whose first thread creates two and waits: one of them takes its place, as it does in a team of OpenMP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.naming import ROOT, TEAM, THREAD
from advisor.formats.recording.recorded_threads import ENDS, STARTS, RecordedThread, calls_of, teams_of
from advisor.trace.events import COLUMNS, Kind
from advisor.trace.recordings.layout import STATE

if TYPE_CHECKING:
    import numpy.typing as npt

    Columns = dict[str, npt.NDArray[Any]]

#: Between calls that create and join threads, a thread that only looks after others spends no more than this, …
_BETWEEN_NS: Final = 1_000_000
#: … and this share of its time.
_BUSY: Final = 0.1
#: A thread may end so much of its life behind those that waited for what it brings.
_SLACK: Final = 0.05
#: Calls in which a process waits for what its children write.
_WAITS_FOR_OUTPUT: Final = ("pipe_read", "poll", "select", "epoll_wait")
_NEVER: Final = np.iinfo(np.int64).max
#: Regions in which a thread that waits for others may be; all else is a call.
_AROUND: Final = (ROOT, TEAM, THREAD)


@dataclass(slots=True)
class _Slot:
    """A processor: until when it is taken, and the stretches in which its first thread leaves it to others."""

    number: int
    taken_ns: int
    free: list[tuple[int, int]] = field(default_factory=list)

    def take_thread(self, begin: int, end: int, *, of_team: bool) -> bool:
        """Return whether a thread with such a life fits, and take it; one of a team of OpenMP only behind the last."""
        slack = _SLACK * (end - begin) if end < _NEVER else 0
        inside = not of_team and any(since <= begin and end - slack <= until for since, until in self.free)
        if not inside and begin < self.taken_ns:
            return False
        if inside:
            self.free = [(max(since, end), until) for since, until in self.free if until > end]
        else:
            self.taken_ns = end
        return True


def assign_slots(threads: Sequence[RecordedThread]) -> list[RecordedThread]:
    """Return the threads, each with the number of the processor that it is part of: that of its first thread."""
    slots: dict[int, list[_Slot]] = {}  # by rank
    chosen: dict[int, int] = {}
    born_ns = _find_births(threads)
    parents = {(one.process.host, one.process.parent) for one in threads}
    lives = [_life(thread) for thread in threads]
    lives = [(min(begin, born_ns.get(id(one), begin)), end) for one, (begin, end) in zip(threads, lives, strict=True)]
    for thread, (begin, end) in sorted(zip(threads, lives, strict=True), key=lambda pair: pair[1][0]):
        mine = slots.setdefault(thread.rank, [])
        of_team = len(teams_of(thread)) > 0
        takes = (each for each in mine if each.take_thread(begin, end, of_team=of_team))
        slot = None if thread.span.number == 0 else next(takes, None)
        if slot is None:
            has_children = (thread.process.host, thread.process.pid) in parents
            slot = _Slot(thread.span.number, end, _free_stretches(thread, has_children))
            mine.append(slot)
        chosen[id(thread)] = slot.number
    return [replace(thread, slot=chosen[id(thread)]) for thread in threads]


def _find_births(threads: Sequence[RecordedThread]) -> dict[int, int]:
    """Return when threads and children were created, by the clock of their process, of those that are known.

    On a busy machine, two threads that are meant to run side by side begin in any order, and the first may end before
    the second one begins. They are two processors all the same, and what they lose is no imbalance.
    """
    found = {id(one): one.span.created_ns for one in threads if one.span.created_ns is not None}
    forked: dict[int, int] = {}
    for one in threads:
        forks = one.records[calls_of(one, "fork")]
        forked |= dict(zip(forks["partner"].tolist(), forks["start_ns"].tolist(), strict=True))
    firsts = (one for one in threads if one.leads_worker)
    return found | {id(one): forked[one.process.pid] for one in firsts if one.process.pid in forked}


def _life(thread: RecordedThread) -> tuple[int, int]:
    """Return when a thread begins and ends, by the clock of its process; the end of one that was killed is unknown.

    Who does nothing any more once it has forked a child, as daemons begin, has ended by then.
    """
    records = thread.records
    begin = min(thread.span.begin_ns, int(records["start_ns"].min(initial=thread.span.begin_ns)))
    if thread.span.end_ns is None:
        return begin, _NEVER
    forks, calls = calls_of(thread, "fork"), np.flatnonzero(records["kind"] != STATE)
    if len(forks) and forks[-1] == calls[-1]:
        forked = int(records["start_ns"][forks[-1]])
        if not (thread.samples["time_ns"] > forked).any():
            return begin, forked
    return begin, max(thread.span.end_ns, int(records["end_ns"].max(initial=0)))


def _free_stretches(thread: RecordedThread, has_children: bool) -> list[tuple[int, int]]:
    """Return from when to when a thread only waits for others: to join them, or between parallel regions of OpenMP.

    A process that has children waits for them where it reads what they write, too.
    """
    records = thread.records[thread.records["kind"] != STATE]
    if not len(records):
        return []
    start, end = records["start_ns"].astype(np.int64), records["end_ns"].astype(np.int64)
    if thread.span.number:
        if not len(teams_of(thread)):
            return []
        done = np.maximum.accumulate(np.where(end > 0, end, _NEVER))
        until = np.r_[start[1:], thread.span.end_ns or 0]
        return [(int(a) + 1, int(b) - 1) for a, b in zip(done, until, strict=True) if b - a > 2]
    looks_after = np.zeros(len(thread.records), dtype=np.bool_)
    looks_after[calls_of(thread, *STARTS, *ENDS)] = True
    if has_children:
        looks_after[calls_of(thread, *_WAITS_FOR_OUTPUT)] = True
    mine = looks_after[thread.records["kind"] != STATE] & (end > 0)
    found: list[tuple[int, int]] = []
    apart = np.r_[True, (start[1:] - end[:-1] > _BETWEEN_NS) | (mine[1:] != mine[:-1])]
    for piece in np.split(np.arange(len(records)), np.flatnonzero(apart)[1:]):
        since, until = int(start[piece[0]]), int(end[piece[-1]])
        idle = int((end[piece] - start[piece]).sum())
        if mine[piece[0]] and len(piece) > 1 and idle >= (1 - _BUSY) * (until - since):
            found.append((since, until))
    return found


def join_columns(host: Columns, guests: Sequence[Columns]) -> Columns:
    """Return the events of a processor: those of its first thread, and of others where that one only waits.

    The call in which it waits ends when another thread begins, and goes on behind its end.
    """
    pieces: list[Columns] = []
    done, waiting = 0, -1
    time, kind, region = host["time_s"], host["kind"], host["region"]
    for guest in sorted(guests, key=lambda one: float(one["time_s"][0])):
        begin, end = guest["time_s"][0], guest["time_s"][-1]
        at, after = (int(place) for place in np.searchsorted(time, (begin, end), side="left"))
        if at > done:
            called = kind[at - 1] == Kind.ENTER and region[at - 1] not in _AROUND
            waiting = int(region[at - 1]) if called else -1
        pieces += [_select(host, done, max(at, done)), _event(host, begin, Kind.LEAVE, waiting), guest]
        for number in range(max(at, done), after):
            waiting = int(region[number]) if kind[number] == Kind.ENTER else -1
        pieces.append(_event(host, end, Kind.ENTER, waiting))
        done = max(after, done)
    pieces.append(_select(host, done, len(time)))
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in COLUMNS}


def _select(columns: Columns, begin: int, end: int) -> Columns:
    return {name: values[begin:end] for name, values in columns.items()}


def _event(columns: Columns, time: float, kind: Kind, region: int) -> Columns:
    """Return one event that enters or leaves a region; none where there is no region."""
    nothing = {"comm": -1, "partner": -1, "size": -1}
    count = 1 if region >= 0 else 0
    made = {name: np.full(count, nothing.get(name, 0), dtype=values.dtype) for name, values in columns.items()}
    made["time_s"][:], made["kind"][:], made["region"][:] = time, kind, region
    return made
