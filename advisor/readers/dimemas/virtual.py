"""A ``Trace`` of the computation in a Dimemas trace, on a clock of its own.

The format holds no time but that of the bursts. On the clock used here communication takes no time, and nobody leaves
a synchronization of all processes before the last one is there: enough to tell phases, iterations and what is serial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.readers.dimemas.records import Record
from advisor.readers.dimemas.rows import AT, PLACES, Rows
from advisor.traces.events import Kind, Role, Trace

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model import IntArray
    from advisor.readers.dimemas.records import Records
    from advisor.readers.numerals import Columns
    from advisor.readers.paraver.labels import Labels

    Column = npt.NDArray[Any]

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
        records, calls = self._records, self._calls()
        joint = np.flatnonzero(records.kind == Record.COLLECTIVE)
        role, bare = self._roles(joint, calls)
        starts = self._everybody(joint) & (role == Role.INIT)
        syncs = self._everybody(joint) & (np.isin(role, _SYNCHRONIZING) | starts)
        matrix = self._by_rank(joint[syncs], self._ends(calls))
        if matrix is None:
            syncs = starts = np.zeros(len(joint), dtype=bool)
        ran, absent = self._clock()
        rows = self._joined([calls, self._sends(), *self._operated(joint, syncs & ~starts, bare), self._roots()])
        everybody = tuple(sorted(set(records.rank.tolist())))
        return Virtual(
            trace=self._trace(rows, self._times(rows["order"], matrix), (everybody,)),
            before_ns=np.maximum(self._first_of(joint[starts]) - absent, 0),
            after_ns=self._after(self._ends(calls)),
            total_ns=self._total - absent,
            absent_ns=absent,
            clock_ns=ran,
            broken=self._broken,
            contradicting=self._contradicting,
            undefined=self._known.undefined.total(),
            uneven=matrix is None,
        )

    def _everybody(self, joint: IntArray) -> npt.NDArray[np.bool_]:
        everybody = set(self._records.rank.tolist())
        whole = [key for key, members in self._records.communicators.items() if set(members) == everybody]
        first_threads = self._records.thread[self._location[joint]] == 0
        found: npt.NDArray[np.bool_] = np.isin(self._records.reference[joint], whole) & first_threads
        return found

    def _ends(self, calls: Columns) -> IntArray:
        """Return the records in which tasks begin to end MPI."""
        role = np.array([known.role for known in self._known.regions], dtype=np.int64)[calls["region"]]
        found: IntArray = calls["order"][(calls["kind"] == Kind.ENTER) & (role == Role.FINALIZE)] // PLACES
        return found

    def _by_rank(self, joint: IntArray, ends: IntArray) -> IntArray | None:
        """Return (ranks, synchronizations): the records in which all tasks meet; None where they do not.

        They meet in the end as well, where all of them get there: behind the record that begins it.
        """
        ranks = int(self._records.rank.max()) + 1
        if np.array_equal(self._records.rank[self._location[ends]], np.arange(ranks)):
            joint = np.sort(np.r_[joint, np.minimum(ends + 1, len(self._records.kind) - 1)])
        counts = np.bincount(self._records.rank[self._location[joint]], minlength=ranks)
        return joint.reshape(ranks, -1) if (counts == counts[0]).all() else None

    def _sends(self) -> Columns:
        index = np.flatnonzero(self._records.kind == Record.SEND)
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

    def _times(self, order: IntArray, matrix: IntArray | None) -> IntArray:
        """Return the time of each row, nanoseconds."""
        index, place = order // PLACES, order % PLACES
        times: IntArray = self._own[index]
        if matrix is None or not matrix.size:
            return times
        own: IntArray = self._own[matrix]
        met = np.cumsum(np.diff(own, axis=1, prepend=0).max(axis=0))
        shift = np.c_[np.zeros(len(own), dtype=np.int64), met - own]
        for rank in range(len(own)):
            mine = np.flatnonzero(
                (self._records.rank[self._location[index]] == rank) & (self._records.thread[self._location[index]] == 0)
            )
            later = np.searchsorted(matrix[rank], index[mine] + (place[mine] >= AT), side="left")
            times[mine] += shift[rank, later]
        return times

    def _first_of(self, index: IntArray) -> IntArray:
        """Return the computation of each thread before the first of the given records."""
        result = np.zeros(len(self._records.rank), dtype=np.int64)
        location, first = np.unique(self._location[index], return_index=True)
        result[location] = self._own[index[first]]
        return result

    def _after(self, ends: IntArray) -> IntArray:
        """Return the computation of each thread after the records in which it ends MPI."""
        done = np.zeros(len(self._records.rank), dtype=bool)
        done[self._location[ends]] = True
        return np.where(done, self._total - self._first_of(ends), 0)

    def _clock(self) -> tuple[IntArray, IntArray]:
        """Return how long each thread ran by the tracer's own clock, and the time before it in the trace."""
        ran = np.full(len(self._records.rank), -1, dtype=np.int64)
        marks = np.flatnonzero((self._records.kind == Record.EVENT) & (self._records.code == CLOCK))
        before = self._first_of(marks)
        for thread in range(len(ran)):
            values = self._records.amount[marks[self._location[marks] == thread]]
            if len(values) > 1 and values[-1] - values[0] >= self._total[thread] - before[thread]:
                ran[thread] = values[-1] - values[0]
            elif len(values) > 1:
                self._contradicting += 1
        return ran, before
