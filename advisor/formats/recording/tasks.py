"""Tasks of OpenMP in the records of a thread: what runs inside of a wait is no waiting.

A thread that waits at a barrier, at a taskwait, or because it must not create more tasks, runs tasks meanwhile. Such a
wait becomes pieces of idleness between the tasks; of a barrier, the last piece is the barrier itself, at which the
thread has arrived when it has nothing more to do. Tasks that a thread runs at the end of a parallel region belong to
its part of it, which ends behind the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats.recording.naming import RegionTable, idle_region
from advisor.formats.recording.recorded_threads import RecordedThread, calls_of, map_processors
from advisor.model.records import FloatArray, IntArray, Profile, Region
from advisor.trace.counts import TASK_RECORDING
from advisor.trace.recordings.layout import FORK, JOIN

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording

#: Calls in which a thread may run tasks.
_CREATE: Final = "omp_task_create"
_WAITS: Final = ("omp_barrier", "omp_implicit_barrier", "omp_taskwait", _CREATE, "omp_taskloop")


@dataclass(frozen=True, slots=True)
class TaskNesting:
    """The records of a thread that tasks have to do with, in the order of their starts.

    ``record`` are their numbers, ``end_ns`` their ends (of parts of parallel regions, behind their last task),
    ``parent`` the one that encloses each, as an index into these arrays, -1 none.
    """

    record: IntArray
    start_ns: IntArray
    end_ns: IntArray
    parent: IntArray
    is_task: npt.NDArray[np.bool_]
    is_wait: npt.NDArray[np.bool_]

    @property
    def parent_waits(self) -> npt.NDArray[np.bool_]:
        """Whether what encloses each one is a wait."""
        return (self.parent >= 0) & self.is_wait[np.maximum(self.parent, 0)]

    def at_end(self, ended_ns: IntArray) -> IntArray:
        """Return the tasks that were run at the end of a parallel region, behind the arrival there (``ended_ns``)."""
        parent = np.maximum(self.parent, 0)
        beside = (self.parent >= 0) & ~self.is_wait[parent] & ~self.is_task[parent] & (ended_ns[parent] > 0)
        return np.flatnonzero(self.is_task & beside & (self.start_ns >= ended_ns[parent]))

    def taken_up_waiting(self, end_ns: IntArray) -> IntArray:
        """Return the records of the tasks that a thread took up when it had nothing else to do."""
        late = np.zeros(len(self.record), dtype=np.bool_)
        late[self.at_end(end_ns[self.record])] = True
        return self.record[self.is_task & (self.parent_waits | late)]

    def find_rows(
        self, thread: RecordedThread, table: RegionTable, numbers: Mapping[Region, int], program: str
    ) -> IntArray:
        """Return the row of the profile that each one is part of, -1 none; without lines, that of the ``program``."""
        number = table.of_calls(thread.process, thread.records[self.record])
        distinct, inverse = np.unique(number, return_inverse=True)
        rest = numbers.get(Region(program, threaded=True), -1)
        regions = [table.regions[each] for each in distinct.tolist()]
        rows = [
            numbers.get(Region(one.name, one.file, one.line, threaded=True), rest if one.line is None else -1)
            for one in regions
        ]
        return np.array(rows, dtype=np.int64)[inverse]

    def busy_ns(self, thread: RecordedThread) -> IntArray:
        """Return the time that each task took itself: without its waits, and what ran in them."""
        size = thread.records["size"][self.record].astype(np.int64)
        busy = np.where(self.is_task & (size >= 0), size, self.end_ns - self.start_ns)
        inside = self.parent >= 0
        np.subtract.at(busy, self.parent[inside], (self.end_ns - self.start_ns)[inside])
        return np.maximum(busy, 0)


@dataclass(frozen=True, slots=True)
class WaitPieces:
    """Where waits are interrupted by tasks: times and regions of leaving them and of entering them again."""

    leave_ns: IntArray
    left: IntArray
    enter_ns: IntArray
    entered: IntArray


def nest_tasks(thread: RecordedThread) -> TaskNesting | None:
    """Return how tasks, waits and parts of parallel regions enclose each other; None for a thread without tasks."""
    tasks = calls_of(thread, "omp_task")
    if not len(tasks):
        return None
    parts, waits = calls_of(thread, "omp_parallel"), calls_of(thread, *_WAITS)
    record = np.sort(np.r_[tasks, parts, waits])
    start = thread.records["start_ns"][record].astype(np.int64)
    end = thread.records["end_ns"][record].astype(np.int64)
    end[end == 0] = max(int(end.max()), int(start.max()) + 1)  # never ended
    is_task, is_part = np.isin(record, tasks), np.isin(record, parts)
    joined = is_task & (thread.records["tag"][record] > 0)  # several in one record, with their creation in between
    end[joined] = start[joined] + thread.records["size"][record[joined]]
    lone = np.flatnonzero(is_task & (_parents(start, end) < 0) & _between_fork_and_join(thread, start))
    owner = np.searchsorted(np.flatnonzero(is_part), lone) - 1
    lone, owner = lone[owner >= 0], np.flatnonzero(is_part)[owner[owner >= 0]]
    np.maximum.at(end, owner, end[lone] + 1)
    return TaskNesting(record, start, end, _parents(start, end), is_task, np.isin(record, waits))


def split_waits(
    thread: RecordedThread, nesting: TaskNesting, regions: RegionTable, calls: IntArray, region: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], WaitPieces]:
    """Return the regions in which ``calls`` begin, given the regions that they are, and the pieces of waits."""
    ended = thread.records["end_ns"][nesting.record].astype(np.int64)
    own = region[np.searchsorted(calls, nesting.record)].astype(np.int64)
    idle = {number: idle_region(regions, number) for number in np.unique(own).tolist()}
    resting = np.array([idle[number] for number in own.tolist()], dtype=np.int64)
    inner = np.flatnonzero(nesting.is_task & nesting.parent_waits)
    wait = nesting.parent[inner]
    tail = nesting.at_end(ended)
    part = nesting.parent[tail]
    behind = _ends_before(part, nesting.end_ns[tail], ended[part])
    entering = region.copy()
    entering[np.searchsorted(calls, nesting.record[wait])] = resting[wait]
    return entering, WaitPieces(
        np.r_[nesting.start_ns[inner], nesting.start_ns[tail]],
        np.r_[resting[wait], resting[part]],
        np.r_[nesting.end_ns[inner], behind],
        np.r_[np.where(_are_last(wait), own[wait], resting[wait]), resting[part]],
    )


def _are_last(groups: IntArray) -> npt.NDArray[np.bool_]:
    """Return which elements are the last of their group."""
    order = np.argsort(groups, kind="stable")
    last = np.empty(len(groups), dtype=np.bool_)
    last[order] = np.diff(groups[order], append=-1) != 0
    return last


def _ends_before(groups: IntArray, end: IntArray, first: IntArray) -> IntArray:
    """Return the end of the one before in each group, for the first of a group what is given."""
    before = np.r_[first[:1], end[:-1]]
    return np.where(np.r_[False, groups[1:] == groups[:-1]][: len(groups)], before, first)


def _between_fork_and_join(thread: RecordedThread, time_ns: IntArray) -> npt.NDArray[np.bool_]:
    """Return at which of the times a team is at work; threads that a team was made of know nothing else."""
    kinds = thread.records["kind"]
    at = np.flatnonzero((kinds == FORK) | (kinds == JOIN))
    if thread.span.number > 0 or not len(at):
        return np.full(len(time_ns), thread.span.number > 0)
    before = np.searchsorted(thread.records["start_ns"][at].astype(np.int64), time_ns) - 1
    return np.asarray((before >= 0) & (kinds[at[np.maximum(before, 0)]] == FORK))


def _parents(start: IntArray, end: IntArray) -> IntArray:
    """Return what encloses each interval directly, -1 for nothing; intervals nest, and are in the order of starts."""
    count = len(start)
    order = np.argsort(np.r_[start, end], kind="stable")
    depth = np.cumsum(np.where(order < count, 1, -1))
    places = np.flatnonzero(order < count)
    who, level = order[places], depth[places]
    parent = np.full(count, -1, dtype=np.int64)
    for deeper in range(2, int(level.max(initial=0)) + 1):
        here, above = np.flatnonzero(level == deeper), np.flatnonzero(level == deeper - 1)
        found = np.searchsorted(above, here) - 1
        parent[who[here[found >= 0]]] = who[above[found[found >= 0]]]
    return parent


def open_at(nesting: TaskNesting, time_ns: npt.NDArray[Any]) -> IntArray:
    """Return the task that runs at each time, as an index into the nesting; -1 where none does."""
    count = len(nesting.record)
    owner = np.where(nesting.is_task, np.arange(count), -1)
    outside = np.where(nesting.parent >= 0, owner[np.maximum(nesting.parent, 0)], -1)
    time = np.r_[nesting.start_ns, nesting.end_ns]
    order = np.argsort(time, kind="stable")
    at = np.searchsorted(time[order], time_ns, side="right") - 1
    return np.where(at >= 0, np.r_[owner, outside][order][np.maximum(at, 0)], -1)


def count_tasks(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return how many tasks were run, their own seconds, and what recording them took while threads created them.

    By region and processor; empty for a run without any.
    """
    numbers = {region: row for row, region in reversed(list(enumerate(profile.regions)))}
    columns = map_processors(profile)
    table = RegionTable(recording.places)
    shape = (len(profile.regions), len(profile.processors))
    found = {name: np.zeros(shape) for name in ("tasks", "task_s", TASK_RECORDING)}
    for thread in recording.threads:
        nesting, q = nest_tasks(thread), columns.get((thread.rank, thread.processor))
        if nesting is None or q is None:
            continue
        chosen = np.flatnonzero(nesting.is_task)
        row = nesting.find_rows(thread, table, numbers, profile.program)[chosen]
        chosen, row = chosen[row >= 0], row[row >= 0]
        tasks = 1 + thread.records["tag"][nesting.record[chosen]]
        np.add.at(found["tasks"][:, q], row, tasks)
        if len(calls_of(thread, _CREATE)):  # a record of that, and one of the task
            np.add.at(found[TASK_RECORDING][:, q], row, 2 * tasks * thread.process.prices.record_s)
        np.add.at(found["task_s"][:, q], row, nesting.busy_ns(thread)[chosen] / 1e9)
    return found if found["tasks"].any() else {}
