"""The records of one thread as events: enters, leaves, and what happens in between, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.hand_overs import count_hand_overs
from advisor.formats.recording.naming import BLOCKED, NO_CORE, ROOT, TEAM, THREAD, RegionTable
from advisor.formats.recording.recorded_threads import ENDS, STARTS, RecordedThread, calls_of, teams_of
from advisor.formats.recording.tasks import TaskNesting, nest_tasks, split_waits
from advisor.trace.events import COLUMNS, GOES_ON, Kind
from advisor.trace.recordings.layout import CALL, FORK, JOIN, MESSAGE, STATE

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.communicators import Communicators
    from advisor.formats.recording.contents import Recording

    Columns = dict[str, npt.NDArray[Any]]

#: Events that stand at the end of their call; all others stand at its begin.
_AT_END: Final = (Kind.RECV, Kind.COLLECTIVE, Kind.IO)
#: Time without a core below this is the price of reading two clocks.
LEAST_LOST_NS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Part:
    """Some events of a thread: when, what, and the records they come from (-1: none)."""

    time_ns: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    region: npt.NDArray[np.int32]
    record: npt.NDArray[np.int64]


def thread_columns(
    thread: RecordedThread, regions: RegionTable, files: dict[int, int], comms: Communicators, *, alone: bool
) -> Columns:
    """Return the columns of ``Trace`` for a thread; times are nanoseconds of the first process's clock.

    ``alone`` says that no other thread of its process counts, whatever it has created.
    """
    records = thread.records
    calls = np.flatnonzero(records["kind"] == CALL)
    region = regions.of_calls(thread.process, records[calls])
    start = records["start_ns"].astype(np.int64)
    end = records["end_ns"].astype(np.int64)
    ended = end[calls] > 0
    event = records["event"][calls]
    late = np.isin(event, _AT_END)
    early = (event > 0) & ~late
    done = calls[late & ended]
    beside = np.flatnonzero(records["kind"] == MESSAGE)
    beside = beside[records["event"][beside] > 0]
    teams = np.flatnonzero((records["kind"] == FORK) | (records["kind"] == JOIN))
    until, tasks = end, nest_tasks(thread)
    pieces: list[_Part] = []
    resumed: list[_Part] = []
    entering = region
    if tasks is not None:
        until = end.copy()
        until[tasks.record] = np.where(end[tasks.record] > 0, tasks.end_ns, 0)
        entering, split = split_waits(thread, tasks, regions, calls, region)
        pieces = [_part(split.leave_ns, Kind.LEAVE, split.left, None)]
        resumed = [_part(split.enter_ns, Kind.ENTER, split.entered, None)]
    entered = _part(start[calls], Kind.ENTER, entering, calls)
    left = _part(until[calls[ended]], Kind.LEAVE, region[ended], calls[ended])
    forking = np.where(records["kind"][teams] == FORK, np.uint8(Kind.FORK), np.uint8(Kind.JOIN))
    begin, finish = _life(thread, start, end)
    own = ROOT if thread.span.number == 0 or len(teams_of(thread)) else THREAD
    beside_others = np.zeros(0, dtype=np.int64) if alone else _time_beside_others(thread, start, end, finish)
    parts = [
        _part(np.array([begin]), Kind.ENTER, np.array([own]), None),
        _part(beside_others[:1], Kind.ENTER, np.full(len(beside_others[:1]), TEAM), None),
        *pieces,
        entered,
        _Part(start[calls[early]], event[early], _nothing(int(early.sum())), calls[early]),
        _Part(start[beside], records["event"][beside], _nothing(len(beside)), beside),
        _Part(start[teams], forking, _nothing(len(teams)), teams),
        *_lost_time(thread, start, end, begin, tasks),
        _Part(end[done], records["event"][done], _nothing(len(done)), done),
        left,
        *resumed,
        _part(beside_others[1:], Kind.LEAVE, np.full(len(beside_others[1:]), TEAM), None),
        _part(np.array([finish]), Kind.LEAVE, np.array([own]), None),
    ]
    return _columns(thread, parts, files, comms)


def begin_ns(recording: Recording) -> int:
    """Return when the first thread begins, by the first process's clock: the zero of the trace."""
    lives = (_life(one, one.records["start_ns"].astype(np.int64), one.records["end_ns"].astype(np.int64))[0]
             + one.offset_ns for one in recording.threads)  # fmt: skip
    return min(lives)


def _part(time_ns: npt.NDArray[Any], kind: Kind, region: npt.NDArray[Any], record: npt.NDArray[Any] | None) -> _Part:
    count = len(time_ns)
    source = np.full(count, -1, dtype=np.int64) if record is None else record
    return _Part(time_ns, np.full(count, kind, dtype=np.uint8), region.astype(np.int32), source)


def _nothing(count: int) -> npt.NDArray[np.int32]:
    return np.full(count, -1, dtype=np.int32)


def _life(thread: RecordedThread, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return when a thread begins and ends, at the latest behind its last record."""
    begin = min(thread.span.begin_ns, int(start.min(initial=thread.span.begin_ns)))
    last = max(int(start.max(initial=begin)), int(end.max(initial=begin)))
    return begin, max(last, thread.span.end_ns or last)


def _lost_time(
    thread: RecordedThread,
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    begin: int,
    tasks: TaskNesting | None,
) -> list[_Part]:
    """Return the times outside of calls in which the thread had no core or was blocked, as calls of their own.

    Between two readings of the CPU clock the thread was away for what the wall clock ran ahead. The recorder reads
    it often enough that at most 50 us of other work lie between them; the time is put before the second reading.
    """
    records = thread.records
    kind = records["kind"]
    at_start = np.flatnonzero((records["cpu_start_ns"] > 0) & np.isin(kind, (CALL, FORK, JOIN)))
    at_end = np.flatnonzero((records["cpu_end_ns"] > 0) & (kind == CALL) & (end > 0))
    waiting = kind[at_start] == JOIN  # for the team
    worker = thread.span.number > 0 and len(teams_of(thread)) > 0
    if worker:  # idle between its parts
        waiting |= _encloses(thread)[at_start]
    if tasks is not None:
        waiting |= np.isin(at_start, tasks.taken_up_waiting(end))
    time = np.r_[thread.span.begin_ns, start[at_start], end[at_end]]
    cpu = np.r_[thread.span.begin_cpu_ns, records["cpu_start_ns"][at_start], records["cpu_end_ns"][at_end]].astype(
        np.int64
    )
    inside = np.r_[False, waiting, ~_encloses(thread)[at_end]]
    if thread.span.end_ns:
        time, cpu = np.r_[time, thread.span.end_ns], np.r_[cpu, thread.span.end_cpu_ns or 0]
        inside = np.r_[inside, worker]
    order = np.argsort(time, kind="stable")
    time, cpu, inside = time[order], cpu[order], inside[order]
    lost = np.diff(time) - np.diff(cpu)
    away = np.flatnonzero((lost > LEAST_LOST_NS) & ~inside[1:]) + 1
    moves = np.sort(np.r_[begin, start[kind != STATE], end[end > 0]])
    until = time[away]
    since = np.maximum(until - lost[away - 1], moves[np.maximum(np.searchsorted(moves, until) - 1, 0)] + 1)
    worth = until - since > LEAST_LOST_NS
    since, until = since[worth], until[worth]
    region = np.where(_find_queued(thread, since, until), NO_CORE, BLOCKED)
    return [_part(since, Kind.ENTER, region, None), _part(until - 1, Kind.LEAVE, region, None)]


def _time_beside_others(
    thread: RecordedThread, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], finish: int
) -> npt.NDArray[np.int64]:
    """Return from when to when the first thread runs beside others that it created itself; empty if it never does.

    That is from its first pthread_create or fork up to the end of its last pthread_join or wait: what it does there is
    as parallel as what they do. Teams of OpenMP have regions of their own.
    """
    if thread.span.number or "omp_parallel" in thread.process.functions.values():
        return np.zeros(0, dtype=np.int64)
    created, joined = calls_of(thread, *STARTS), calls_of(thread, *ENDS)
    created, joined = created[end[created] > 0], joined[end[joined] > 0]
    if not len(created):
        return np.zeros(0, dtype=np.int64)
    until = int(end[joined[-1]]) + 1 if len(joined) else finish
    since = int(start[created[0]])
    return np.array([since, max(until, since + 2)], dtype=np.int64)


def _encloses(thread: RecordedThread) -> npt.NDArray[np.bool_]:
    """Return which records enclose others: parts of parallel regions, and tasks, in which threads compute."""
    mark = np.zeros(len(thread.records), dtype=np.bool_)
    mark[teams_of(thread)] = True
    mark[calls_of(thread, "omp_task")] = True
    return mark


def _find_queued(
    thread: RecordedThread, since: npt.NDArray[np.int64], until: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return in which of the times the thread was runnable for the most part, and had no core."""
    states = thread.records[thread.records["kind"] == STATE]
    if not len(states) or (states["size"] < 0).any():
        return np.ones(len(since), dtype=np.bool_)
    time, queue = states["start_ns"].astype(np.int64), states["size"]
    after = np.minimum(np.searchsorted(time, until), len(time) - 1)
    before = np.maximum(np.searchsorted(time, since, side="right") - 1, 0)
    return np.asarray(queue[after] - queue[before] >= (until - since) / 2)


def _columns(thread: RecordedThread, parts: list[_Part], files: dict[int, int], comms: Communicators) -> Columns:
    """Return the events of all parts in the order of time; of equal times, in the order of the parts."""
    time = np.concatenate([part.time_ns for part in parts])
    order = np.argsort(time, kind="stable")
    kind, region, source = (
        np.concatenate([getattr(part, name) for part in parts])[order] for name in ("kind", "region", "record")
    )
    nothing = {"comm": -1, "partner": -1, "size": -1}
    columns: Columns = {name: np.full(len(order), nothing.get(name, 0), dtype=dtype) for name, dtype in COLUMNS.items()}
    columns["time_s"] = time[order] + thread.offset_ns
    columns["kind"], columns["region"] = kind, region
    told = np.flatnonzero(kind > Kind.LEAVE)
    records = thread.records[source[told]]
    columns["size"][told] = records["size"]
    columns["tag"][told] = records["tag"]
    calling = np.flatnonzero((kind == Kind.ENTER) & (source >= 0))
    often = count_hand_overs(thread, source[calling])
    columns["tag"][calling] = np.where(often > 0, often - 1, GOES_ON)
    columns["request"][told] = records["request"]
    io = records["event"] == Kind.IO
    columns["partner"][told] = np.where(io, _files(records, files), comms.partner_ranks(thread, records))
    columns["comm"][told] = np.where(io, -1, comms.communicator_numbers(thread, records))
    return columns


def _files(records: npt.NDArray[Any], files: dict[int, int]) -> npt.NDArray[np.int32]:
    table = np.full(max(files, default=0) + 2, -1, dtype=np.int32)
    for number, index in files.items():
        table[number] = index
    known = (records["partner"] >= 0) & (records["partner"] < len(table))
    return np.where(known, table[np.where(known, records["partner"], 0)], -1).astype(np.int32)
