"""A ``Trace`` of the computation in a Dimemas trace, on a clock of its own.

The format holds no time but that of the bursts. On the clock used here communication takes no time, and nobody leaves
a synchronization of all processes before the last one is there: enough to tell phases, iterations and what is serial.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.readers.dimemas.records import OPERATIONS, Record
from advisor.readers.paraver import catalogue, pairing
from advisor.readers.paraver.catalogue import Catalogue
from advisor.readers.paraver.labels import Labels
from advisor.traces.events import Kind, Location, Role, Trace, TraceRegion
from advisor.traces.matching import COLLECTIVE_ROLES
from advisor.traces.regions import classify

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model import IntArray
    from advisor.readers.dimemas.records import Records
    from advisor.readers.numerals import Columns

    Column = npt.NDArray[Any]

#: Numbers of calls that Extrae has always given them, for traces without their ``.pcf`` file.
_POINT_TO_POINT: Final = {1: "Send", 2: "Recv", 3: "Isend", 4: "Irecv", 5: "Wait", 6: "Waitall", 41: "Sendrecv"}
_JOINT: Final = {7: "Bcast", 8: "Barrier", 9: "Reduce", 10: "Allreduce", 13: "Gather"}
_OTHER: Final = {19: "Comm_rank", 20: "Comm_size", 22: "Comm_dup", 23: "Comm_split", 31: "Init", 32: "Finalize"}
_KNOWN: Final = {50000001: _POINT_TO_POINT, 50000002: _JOINT, 50000003: _OTHER}
_FILES: Final = {2: "write", 4: "fwrite", 11: "open", 12: "fopen", 14: "close", 15: "fclose"}
#: Extrae's own clock, in nanoseconds.
CLOCK: Final = 40000050
#: Places of rows around a record, in their order, and how many there may be.
_FIRST, _BEFORE, _AT, _BEHIND, _LAST = range(5)
_PLACES: Final = 8
_NAMES: Final = ("region", "group", "comm", "partner", "tag", "size")
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


def complete(names: Labels) -> Labels:
    """Return the names, with those of well-known calls where there is no ``.pcf`` file."""
    if names.types:
        return names
    values = {kind: {value: f"MPI_{name}" for value, name in known.items()} for kind, known in _KNOWN.items()}
    return Labels(dict.fromkeys(_KNOWN, "MPI call"), values | {catalogue.IO_CALL: _FILES}, complete=True)


def build(records: Records, names: Labels) -> Virtual:
    """Return the trace of the computation in ``records``."""
    return _Builder(records, names).build()


class _Builder:
    """The rows of the trace, each with the record it stands for and its place before, at or behind it."""

    def __init__(self, records: Records, names: Labels) -> None:
        self._records = records
        self._known = Catalogue(complete(names))
        self._names = names
        self._location = np.repeat(np.arange(len(records.rank)), np.diff(records.first))
        sums = np.r_[0, np.cumsum(np.where(records.kind == Record.BURST, records.amount, 0))]
        self._own = sums[1:] - sums[records.first[:-1]][self._location]
        self._total = sums[records.first[1:]] - sums[records.first[:-1]]
        self._broken = self._contradicting = 0
        self._operations = [TraceRegion(*classify(name)) for name in OPERATIONS]

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
        return Virtual(
            trace=self._trace(rows, matrix),
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

    def _rows(self, index: IntArray, place: int, kind: int | Column, **columns: Column) -> Columns:
        count = len(index)
        filled: Columns = {name: np.full(count, -1, dtype=np.int64) for name in _NAMES}
        return filled | {"order": _PLACES * index + place, "kind": np.broadcast_to(kind, (count,)), **columns}

    @staticmethod
    def _joined(parts: list[Columns]) -> Columns:
        order = np.concatenate([part["order"] for part in parts])
        sort = np.argsort(order, kind="stable")
        return {name: np.concatenate([part[name] for part in parts])[sort] for name in parts[0]}

    def _calls(self) -> Columns:
        """Return beginnings and ends of the calls that events tell of, with the regions of both."""
        records, known = self._records, self._known
        index = np.flatnonzero((records.kind == Record.EVENT) & np.isin(records.code, known.calls))
        code, value = records.code[index].astype(np.int64), records.amount[index]
        group = np.searchsorted(known.calls, code)
        follower = np.minimum(index + 1, len(records.kind) - 1)
        lines = np.zeros(len(index), dtype=np.int64)
        for function, line in known.lines.items():
            mine = (code == function) & (records.kind[follower] == Record.EVENT) & (records.code[follower] == line)
            lines[mine] = records.amount[follower[mine]]
        entering = value != 0
        region = np.full(len(index), -1, dtype=np.int32)
        region[entering] = known.numbers(group[entering], value[entering], lines[entering])
        kind = np.where(entering, Kind.ENTER, Kind.LEAVE).astype(np.uint8)
        edges = np.searchsorted(self._location[index], np.arange(len(records.rank) + 1)).tolist()
        parts = [slice(low, high) for low, high in pairwise(edges)]
        pairing.judge(kind, group, known.own, parts)
        for part in parts:
            faults = pairing.close(kind[part], region[part], group[part], known.nested)
            self._broken += faults.unopened + faults.unclosed
        kept = kind != pairing.NOTHING
        columns = {"region": region[kept], "group": group[kept]}
        return self._rows(index[kept], _AT, kind[kept], **columns)

    def _roles(self, joint: IntArray, calls: Columns) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the role of each collective operation, and whether no call around it tells one."""
        mpi = np.isin(self._known.calls, catalogue.MPI_CALLS)[calls["group"]]
        index, region = calls["order"][mpi] // _PLACES, calls["region"][mpi]
        entering = calls["kind"][mpi] == Kind.ENTER
        named = np.array([known.role for known in self._known.regions], dtype=np.int64)
        last = np.searchsorted(index, joint) - 1
        around = np.maximum(last, 0)
        own = np.array([known.role for known in self._operations], dtype=np.int64)[self._records.code[joint]]
        if not len(index):
            return own, np.ones(len(joint), dtype=bool)
        inside = (last >= 0) & entering[around] & (self._location[index[around]] == self._location[joint])
        role = np.where(inside, named[region[around]], -1)
        telling = np.isin(role, (*COLLECTIVE_ROLES, Role.INIT, Role.COMM_OTHER))
        return np.where(telling, role, own), ~telling

    def _everybody(self, joint: IntArray) -> npt.NDArray[np.bool_]:
        everybody = set(self._records.rank.tolist())
        whole = [key for key, members in self._records.communicators.items() if set(members) == everybody]
        first_threads = self._records.thread[self._location[joint]] == 0
        found: npt.NDArray[np.bool_] = np.isin(self._records.reference[joint], whole) & first_threads
        return found

    def _ends(self, calls: Columns) -> IntArray:
        """Return the records in which tasks begin to end MPI."""
        role = np.array([known.role for known in self._known.regions], dtype=np.int64)[calls["region"]]
        found: IntArray = calls["order"][(calls["kind"] == Kind.ENTER) & (role == Role.FINALIZE)] // _PLACES
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
        return self._rows(index, _AT, Kind.SEND, partner=partner, size=size, tag=self._records.tag[index])

    def _operated(self, joint: IntArray, syncs: npt.NDArray[np.bool_], bare: npt.NDArray[np.bool_]) -> list[Columns]:
        """Return the collective operations, and calls of their own for those in none.

        Only those of everybody have a communicator: what the others wait for is not known without a network.
        """
        size = self._records.amount[joint] + self._records.more[joint]
        alone = joint[bare]
        numbers = [self._known.regions.setdefault(known, len(self._known.regions)) for known in self._operations]
        region = np.array(numbers, dtype=np.int64)[self._records.code[alone]]
        return [
            self._rows(joint, _AT, Kind.COLLECTIVE, comm=np.where(syncs, 0, -1), size=size),
            self._rows(alone, _BEFORE, Kind.ENTER, region=region),
            self._rows(alone, _BEHIND, Kind.LEAVE, region=region),
        ]

    def _roots(self) -> Columns:
        """Return beginning and end of each thread that has records."""
        first = self._records.first
        filled = np.flatnonzero(np.diff(first))
        zeros = np.zeros(len(filled), dtype=np.int64)
        begins = self._rows(first[filled], _FIRST, Kind.ENTER, region=zeros)
        return self._joined([begins, self._rows(first[filled + 1] - 1, _LAST, Kind.LEAVE, region=zeros)])

    def _times(self, order: IntArray, matrix: IntArray | None) -> IntArray:
        """Return the time of each row, nanoseconds."""
        index, place = order // _PLACES, order % _PLACES
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
            later = np.searchsorted(matrix[rank], index[mine] + (place[mine] >= _AT), side="left")
            times[mine] += shift[rank, later]
        return times

    def _trace(self, rows: Columns, matrix: IntArray | None) -> Trace:
        order, count = rows["order"], len(rows["order"])
        records = self._records
        location = self._location[order // _PLACES]
        titles = zip(records.rank.tolist(), records.thread.tolist(), strict=True)
        columns: dict[str, Any] = {
            "time_s": self._times(order, matrix) / 1e9,
            "kind": rows["kind"].astype(np.uint8),
            **{name: rows[name].astype(np.int32) for name in ("region", "comm", "partner", "tag")},
            "size": rows["size"],
            "request": np.zeros(count, dtype=np.uint64),
        }
        return Trace(
            program=catalogue.program(self._names),
            tool="Dimemas",
            locations=tuple(Location(f"{rank}.{thread}", rank, thread) for rank, thread in titles),
            regions=tuple(self._known.regions),
            communicators=(tuple(sorted(set(records.rank.tolist()))),),
            files=(),
            first=np.r_[0, np.cumsum(np.bincount(location, minlength=len(records.rank)))].astype(np.int64),
            **columns,
        )

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
