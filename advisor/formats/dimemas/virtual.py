"""A ``Trace`` of the computation in a Dimemas trace, on a clock of its own.

The format holds no time but that of the bursts. On the clock used here communication takes no time, and nobody leaves
a synchronization of all processes before the last one is there: enough to tell phases, iterations and what is serial.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.dimemas.records import Record
from advisor.formats.dimemas.rows import AT, PLACES, Rows
from advisor.trace.events import Kind, Role, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.dimemas.records import Records
    from advisor.formats.numerals import Columns
    from advisor.formats.paraver.labels import Labels
    from advisor.model.records import IntArray

#: Extrae's own clock, in nanoseconds.
CLOCK: Final = 40000050
_SYNCHRONIZING: Final = (Role.BARRIER, Role.ALL_TO_ALL)


@dataclass(frozen=True, slots=True)
class Virtual:
    """The trace of the computation, and what it has no place for.

    Per thread: ``before_ns`` and ``after_ns`` computation before MPI has started and after it ends, ``total_ns`` all of
    it, each without ``absent_ns``, the time that the trace has before the process exists; ``clock_ns`` how long the
    thread ran by the tracer's own clock (-1 unknown). ``broken`` calls begin or end only, ``undefined`` ones have no
    name; by the clock of ``contradicting`` threads they compute longer than they run. ``uneven`` tells that the
    tasks do not synchronize equally often, so that there are no phases.
    """

    trace: Trace
    before_ns: IntArray
    after_ns: IntArray
    total_ns: IntArray
    absent_ns: IntArray
    clock_ns: IntArray
    broken: int
    contradicting: int
    undefined: int
    uneven: bool


@dataclass(frozen=True, slots=True)
class _Meetings:
    """The synchronizations of all tasks, (ranks, synchronizations), None where there are none that all take part in.

    ``shift_ns`` (ranks, synchronizations + 1) is what is added to each task's own computation behind each of them.
    Collective operations that are ``counted`` are of all tasks, and ``bare`` ones stand in no call.
    """

    matrix: IntArray | None
    shift_ns: IntArray | None
    counted: npt.NDArray[np.bool_]
    bare: npt.NDArray[np.bool_]


def build(records: Records, names: Labels) -> Virtual:
    """Return the trace of the computation in ``records``."""
    return _Builder(records, names).build()


class _Builder(Rows):
    """The trace on its own clock."""

    def __init__(self, records: Records, names: Labels) -> None:
        super().__init__(records, names)
        self._contradicting = 0

    def build(self) -> Virtual:
        """Return the trace and what it has no place for."""
        joint = self._joint
        role, bare = self._roles()
        everybodys = self._everybody()
        starts = everybodys & (role == Role.INIT)
        syncs = everybodys & (np.isin(role, _SYNCHRONIZING) | starts)
        ends = self._ends()
        matrix = self._by_rank(joint[syncs], ends)
        if matrix is None:
            syncs = starts = np.zeros(len(joint), dtype=bool)
        total = self._own_in_all()
        ran, absent = self._clock(total)
        meetings = _Meetings(matrix, self._shift(matrix), syncs & ~starts, bare)
        everybody = tuple(sorted(set(self._records.rank.tolist())))
        return Virtual(
            trace=self._trace(lambda number: self._thread(number, meetings), (everybody,)),
            before_ns=np.maximum(self._first_of(joint[starts]) - absent, 0),
            after_ns=self._after(ends, total),
            total_ns=total - absent,
            absent_ns=absent,
            clock_ns=ran,
            broken=self._broken,
            contradicting=self._contradicting,
            undefined=self._known.undefined.total(),
            uneven=matrix is None,
        )

    def _thread(self, number: int, meetings: _Meetings) -> tuple[Columns, IntArray]:
        """Return the rows of a thread and their times, nanoseconds."""
        part = self._joint_of(number)
        operated = self._operated(self._joint[part], meetings.counted[part], meetings.bare[part])
        rows = self._joined([self._calls_of(number), self._sends(number), *operated, *self._roots(number)])
        return rows, self._times(number, rows["order"], meetings)

    def _everybody(self) -> npt.NDArray[np.bool_]:
        """Return which collective operations are of all processes, at their first threads."""
        everybody = set(self._records.rank.tolist())
        whole = [key for key, members in self._records.communicators.items() if set(members) == everybody]
        first_threads = self._records.thread[self._location(self._joint)] == 0
        found: npt.NDArray[np.bool_] = np.isin(self._records.reference[self._joint], whole) & first_threads
        return found

    def _ends(self) -> IntArray:
        """Return the records in which tasks begin to end MPI."""
        role = np.array([known.role for known in self._known.regions], dtype=np.int64)
        found = []
        for number in range(len(self._records.rank)):
            calls = self._calls_of(number)
            ending = (calls["kind"] == Kind.ENTER) & (role[calls["region"]] == Role.FINALIZE)
            found.append(calls["order"][ending] // PLACES)
        return np.concatenate(found)

    def _by_rank(self, joint: IntArray, ends: IntArray) -> IntArray | None:
        """Return (ranks, synchronizations): the records in which all tasks meet; None where they do not.

        They meet in the end as well, where all of them get there: behind the record that begins it.
        """
        ranks = int(self._records.rank.max()) + 1
        if np.array_equal(self._records.rank[self._location(ends)], np.arange(ranks)):
            joint = np.sort(np.r_[joint, np.minimum(ends + 1, len(self._records.kind) - 1)])
        counts = np.bincount(self._records.rank[self._location(joint)], minlength=ranks)
        return joint.reshape(ranks, -1) if (counts == counts[0]).all() else None

    def _shift(self, matrix: IntArray | None) -> IntArray | None:
        """Return (ranks, synchronizations + 1): how much later than by its own computation each task is."""
        if matrix is None or not matrix.size:
            return None
        own = self._own_at(matrix.reshape(-1)).reshape(matrix.shape)
        met = np.cumsum(np.diff(own, axis=1, prepend=0).max(axis=0))
        shift: IntArray = np.c_[np.zeros(len(own), dtype=np.int64), met - own]
        return shift

    def _sends(self, number: int) -> Columns:
        part = slice(*self._records.first[number : number + 2].tolist())
        index = np.flatnonzero(self._records.kind[part] == Record.SEND) + part.start
        partner, size = self._records.partner[index], self._records.amount[index]
        return self._rows(index, AT, Kind.SEND, partner=partner, size=size, tag=self._records.tag[index])

    def _operated(self, joint: IntArray, syncs: npt.NDArray[np.bool_], bare: npt.NDArray[np.bool_]) -> list[Columns]:
        """Return the collective operations, and calls of their own for those in none.

        Only those of everybody have a communicator: what the others wait for is not known without a network.
        """
        size = self._records.amount[joint] + self._records.more[joint]
        return [
            self._rows(joint, AT, Kind.COLLECTIVE, comm=np.where(syncs, 0, -1), size=size),
            *self._alone(joint, bare),
        ]

    def _times(self, number: int, order: IntArray, meetings: _Meetings) -> IntArray:
        """Return the time of each row of a thread, nanoseconds."""
        part = slice(*self._records.first[number : number + 2].tolist())
        index, place = order // PLACES, order % PLACES
        times: IntArray = self._own(part)[index - part.start]
        if meetings.matrix is None or meetings.shift_ns is None or self._records.thread[number]:
            return times
        rank = self._records.rank[number]
        later = np.searchsorted(meetings.matrix[rank], index + (place >= AT), side="left")
        shifted: IntArray = times + meetings.shift_ns[rank, later]
        return shifted

    def _first_of(self, index: IntArray) -> IntArray:
        """Return the computation of each thread before the first of the given records."""
        result = np.zeros(len(self._records.rank), dtype=np.int64)
        location, first = np.unique(self._location(index), return_index=True)
        result[location] = self._own_at(index[first])
        return result

    def _after(self, ends: IntArray, total: IntArray) -> IntArray:
        """Return the computation of each thread after the records in which it ends MPI, of ``total``."""
        done = np.zeros(len(self._records.rank), dtype=bool)
        done[self._location(ends)] = True
        return np.where(done, total - self._first_of(ends), 0)

    def _clock(self, total: IntArray) -> tuple[IntArray, IntArray]:
        """Return how long each thread ran by the tracer's own clock, and the time before it in the trace.

        ``total`` is the computation of each thread: who computes longer than it ran has no clock to go by.
        """
        records = self._records
        marks = self._where(lambda part: (records.kind[part] == Record.EVENT) & (records.code[part] == CLOCK))
        before = self._first_of(marks)
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
