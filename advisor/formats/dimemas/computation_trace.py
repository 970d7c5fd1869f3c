"""A ``Trace`` of the computation in a Dimemas trace, on a clock of its own.

The format holds no time but that of the bursts. On the clock used here communication takes no time, and nobody leaves
a synchronization of all processes before the last one is there: enough to tell phases, iterations and what is serial.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.dimemas.records import DimemasRecords, RecordKind
from advisor.formats.dimemas.rows import AT, PLACES, TraceRows
from advisor.trace.events import Kind, Role, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.number_lines import Columns
    from advisor.formats.paraver.labels import Labels
    from advisor.model.records import IntArray

#: Extrae's own clock, in nanoseconds.
CLOCK: Final = 40000050
_SYNCHRONIZING: Final = (Role.BARRIER, Role.ALL_TO_ALL)


@dataclass(frozen=True, slots=True)
class ComputationTrace:
    """The trace of the computation, and what it has no place for.

    Per thread: ``before_ns`` and ``after_ns`` computation before MPI has started and after it ends, ``total_ns`` all of
    it, each without ``absent_ns``, the time that the trace has before the process exists; ``clock_ns`` how long the
    thread ran by the tracer's own clock (-1 unknown). ``broken_calls`` calls begin or end only, ``undefined_calls``
    ones have no name; by the clock of ``contradicting_threads`` threads they compute longer than they run.
    ``uneven_syncs`` tells that the tasks do not synchronize equally often, so that there are no phases.
    """

    trace: Trace
    before_ns: IntArray
    after_ns: IntArray
    total_ns: IntArray
    absent_ns: IntArray
    clock_ns: IntArray
    broken_calls: int
    contradicting_threads: int
    undefined_calls: int
    uneven_syncs: bool


@dataclass(frozen=True, slots=True)
class _SyncPoints:
    """The synchronizations of all tasks, (ranks, synchronizations), None where there are none that all take part in.

    ``shift_ns`` (ranks, synchronizations + 1) is what is added to each task's own computation behind each of them.
    Collective operations that are ``counted_syncs`` are of all tasks, and ``bare`` ones stand in no call.
    """

    matrix: IntArray | None
    shift_ns: IntArray | None
    counted_syncs: npt.NDArray[np.bool_]
    bare: npt.NDArray[np.bool_]


def build_computation_trace(records: DimemasRecords, names: Labels) -> ComputationTrace:
    """Return the trace of the computation in ``records``."""
    return _ComputationBuilder(records, names).build_trace()


class _ComputationBuilder(TraceRows):
    """The trace on its own clock."""

    def __init__(self, records: DimemasRecords, names: Labels) -> None:
        super().__init__(records, names)
        self._contradicting = 0

    def build_trace(self) -> ComputationTrace:
        """Return the trace and what it has no place for."""
        joint = self._joint
        role, bare = self._find_roles()
        everybodys = self._find_global_operations()
        starts = everybodys & (role == Role.INIT)
        syncs = everybodys & (np.isin(role, _SYNCHRONIZING) | starts)
        ends = self._find_ends()
        matrix = self._align_by_rank(joint[syncs], ends)
        if matrix is None:
            syncs = starts = np.zeros(len(joint), dtype=bool)
        total = self._total_own_time()
        ran, absent = self._read_clock(total)
        meetings = _SyncPoints(matrix, self._compute_shift(matrix), syncs & ~starts, bare)
        everybody = tuple(sorted(set(self._records.rank.tolist())))
        return ComputationTrace(
            trace=self._assemble_trace(lambda number: self._build_thread_rows(number, meetings), (everybody,)),
            before_ns=np.maximum(self._time_before_first(joint[starts]) - absent, 0),
            after_ns=self._time_after_end(ends, total),
            total_ns=total - absent,
            absent_ns=absent,
            clock_ns=ran,
            broken_calls=self._broken,
            contradicting_threads=self._contradicting,
            undefined_calls=self._known.undefined.total(),
            uneven_syncs=matrix is None,
        )

    def _build_thread_rows(self, number: int, meetings: _SyncPoints) -> tuple[Columns, IntArray]:
        """Return the rows of a thread and their times, nanoseconds."""
        part = self._slice_collectives(number)
        operated = self._build_operations(self._joint[part], meetings.counted_syncs[part], meetings.bare[part])
        rows = self._join_rows(
            [self._build_call_rows(number), self._build_sends(number), *operated, *self._build_root_rows(number)]
        )
        return rows, self._compute_times(number, rows["order"], meetings)

    def _find_global_operations(self) -> npt.NDArray[np.bool_]:
        """Return which collective operations are of all processes, at their first threads."""
        everybody = set(self._records.rank.tolist())
        whole = [key for key, members in self._records.communicators.items() if set(members) == everybody]
        first_threads = self._records.thread[self._locate_records(self._joint)] == 0
        found: npt.NDArray[np.bool_] = np.isin(self._records.reference[self._joint], whole) & first_threads
        return found

    def _find_ends(self) -> IntArray:
        """Return the records in which tasks begin to end MPI."""
        role = np.array([known.role for known in self._known.regions], dtype=np.int64)
        found = []
        for number in range(len(self._records.rank)):
            calls = self._build_call_rows(number)
            ending = (calls["kind"] == Kind.ENTER) & (role[calls["region"]] == Role.FINALIZE)
            found.append(calls["order"][ending] // PLACES)
        return np.concatenate(found)

    def _align_by_rank(self, joint: IntArray, ends: IntArray) -> IntArray | None:
        """Return (ranks, synchronizations): the records in which all tasks meet; None where they do not.

        They meet in the end as well, where all of them get there: behind the record that begins it.
        """
        ranks = int(self._records.rank.max()) + 1
        if np.array_equal(self._records.rank[self._locate_records(ends)], np.arange(ranks)):
            joint = np.sort(np.r_[joint, np.minimum(ends + 1, len(self._records.kind) - 1)])
        counts = np.bincount(self._records.rank[self._locate_records(joint)], minlength=ranks)
        return joint.reshape(ranks, -1) if (counts == counts[0]).all() else None

    def _compute_shift(self, matrix: IntArray | None) -> IntArray | None:
        """Return (ranks, synchronizations + 1): how much later than by its own computation each task is."""
        if matrix is None or not matrix.size:
            return None
        own = self._own_time_at(matrix.reshape(-1)).reshape(matrix.shape)
        met = np.cumsum(np.diff(own, axis=1, prepend=0).max(axis=0))
        shift: IntArray = np.c_[np.zeros(len(own), dtype=np.int64), met - own]
        return shift

    def _build_sends(self, number: int) -> Columns:
        part = slice(*self._records.first[number : number + 2].tolist())
        index = np.flatnonzero(self._records.kind[part] == RecordKind.SEND) + part.start
        partner, size = self._records.partner[index], self._records.amount[index]
        return self._make_rows(index, AT, Kind.SEND, partner=partner, size=size, tag=self._records.tag[index])

    def _build_operations(
        self, joint: IntArray, syncs: npt.NDArray[np.bool_], bare: npt.NDArray[np.bool_]
    ) -> list[Columns]:
        """Return the collective operations, and calls of their own for those in none.

        Only those of everybody have a communicator: what the others wait for is not known without a network.
        """
        size = self._records.amount[joint] + self._records.more[joint]
        return [
            self._make_rows(joint, AT, Kind.COLLECTIVE, comm=np.where(syncs, 0, -1), size=size),
            *self._build_bare_calls(joint, bare),
        ]

    def _compute_times(self, number: int, order: IntArray, meetings: _SyncPoints) -> IntArray:
        """Return the time of each row of a thread, nanoseconds."""
        part = slice(*self._records.first[number : number + 2].tolist())
        index, place = order // PLACES, order % PLACES
        times = self._compute_row_times(part, order)
        if meetings.matrix is None or meetings.shift_ns is None or self._records.thread[number]:
            return times
        rank = self._records.rank[number]
        later = np.searchsorted(meetings.matrix[rank], index + (place >= AT), side="left")
        shifted: IntArray = times + meetings.shift_ns[rank, later]
        return shifted

    def _time_before_first(self, index: IntArray) -> IntArray:
        """Return the computation of each thread before the first of the given records."""
        result = np.zeros(len(self._records.rank), dtype=np.int64)
        location, first = np.unique(self._locate_records(index), return_index=True)
        result[location] = self._own_time_at(index[first])
        return result

    def _time_after_end(self, ends: IntArray, total: IntArray) -> IntArray:
        """Return the computation of each thread after the records in which it ends MPI, of ``total``."""
        done = np.zeros(len(self._records.rank), dtype=bool)
        done[self._locate_records(ends)] = True
        return np.where(done, total - self._time_before_first(ends), 0)

    def _read_clock(self, total: IntArray) -> tuple[IntArray, IntArray]:
        """Return how long each thread ran by the tracer's own clock, and the time before it in the trace.

        ``total`` is the computation of each thread: who computes longer than it ran has no clock to go by.
        """
        records = self._records
        marks = self._find_records(
            lambda part: (records.kind[part] == RecordKind.EVENT) & (records.code[part] == CLOCK)
        )
        before = self._time_before_first(marks)
        edges = np.searchsorted(marks, records.first)
        ran = np.full(len(records.rank), -1, dtype=np.int64)
        for thread, (low, high) in enumerate(pairwise(edges.tolist())):
            if high - low < 2:
                continue
            lasted = records.amount[marks[high - 1]] - records.amount[marks[low]]
            if lasted >= total[thread] - before[thread]:
                ran[thread] = lasted
            else:
                self._contradicting += 1
        return ran, before
