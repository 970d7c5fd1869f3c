"""Rows of a trace made from the records of a Dimemas trace, each with the record it stands for."""

from __future__ import annotations

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
#: Places of rows around a record, in their order, and how many there may be.
FIRST, BEFORE, AT, BEHIND, LAST = range(5)
PLACES: Final = 8
_NAMES: Final = ("region", "group", "comm", "partner", "tag", "size", "request")


def complete(names: Labels) -> Labels:
    """Return the names, with those of well-known calls where there is no ``.pcf`` file."""
    if names.types:
        return names
    values = {kind: {value: f"MPI_{name}" for value, name in known.items()} for kind, known in _KNOWN.items()}
    return Labels(dict.fromkeys(_KNOWN, "MPI call"), values | {catalogue.IO_CALL: _FILES}, complete=True)


class Rows:
    """The rows of the trace, each with its place before, at or behind the record it stands for."""

    def __init__(self, records: Records, names: Labels) -> None:
        self._records = records
        self._known = Catalogue(complete(names))
        self._names = names
        self._location = np.repeat(np.arange(len(records.rank)), np.diff(records.first))
        sums = np.r_[0, np.cumsum(np.where(records.kind == Record.BURST, records.amount, 0))]
        self._own = sums[1:] - sums[records.first[:-1]][self._location]
        self._total = sums[records.first[1:]] - sums[records.first[:-1]]
        self._broken = 0
        self._operations = [TraceRegion(*classify(name)) for name in OPERATIONS]

    def _rows(self, index: IntArray, place: int, kind: int | Column, **columns: Column) -> Columns:
        count = len(index)
        filled: Columns = {name: np.full(count, -1, dtype=np.int64) for name in _NAMES}
        return filled | {"order": PLACES * index + place, "kind": np.broadcast_to(kind, (count,)), **columns}

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
        return self._rows(index[kept], AT, kind[kept], **columns)

    def _roles(self, joint: IntArray, calls: Columns) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the role of each collective operation, and whether no call around it tells one."""
        mpi = np.isin(self._known.calls, catalogue.MPI_CALLS)[calls["group"]]
        index, region = calls["order"][mpi] // PLACES, calls["region"][mpi]
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

    def _roots(self) -> Columns:
        """Return beginning and end of each thread that has records."""
        first = self._records.first
        filled = np.flatnonzero(np.diff(first))
        zeros = np.zeros(len(filled), dtype=np.int64)
        begins = self._rows(first[filled], FIRST, Kind.ENTER, region=zeros)
        return self._joined([begins, self._rows(first[filled + 1] - 1, LAST, Kind.LEAVE, region=zeros)])

    def _trace(self, rows: Columns, times_ns: IntArray, communicators: tuple[tuple[int, ...], ...]) -> Trace:
        """Return the trace of rows that are in order."""
        order = rows["order"]
        records = self._records
        location = self._location[order // PLACES]
        titles = zip(records.rank.tolist(), records.thread.tolist(), strict=True)
        columns: dict[str, Any] = {
            "time_s": times_ns / 1e9,
            "kind": rows["kind"].astype(np.uint8),
            **{name: rows[name].astype(np.int32) for name in ("region", "comm", "partner", "tag")},
            "size": rows["size"],
            "request": np.maximum(rows["request"], 0).astype(np.uint64),
        }
        return Trace(
            program=catalogue.program(self._names),
            tool="Dimemas",
            locations=tuple(Location(f"{rank}.{thread}", rank, thread) for rank, thread in titles),
            regions=tuple(self._known.regions),
            communicators=communicators,
            files=(),
            first=np.r_[0, np.cumsum(np.bincount(location, minlength=len(records.rank)))].astype(np.int64),
            **columns,
        )

    def _alone(self, joint: IntArray, bare: npt.NDArray[np.bool_]) -> list[Columns]:
        """Return calls of their own for the collective operations that stand in none."""
        alone = joint[bare]
        numbers = [self._known.regions.setdefault(known, len(self._known.regions)) for known in self._operations]
        region = np.array(numbers, dtype=np.int64)[self._records.code[alone]]
        return [
            self._rows(alone, BEFORE, Kind.ENTER, region=region),
            self._rows(alone, BEHIND, Kind.LEAVE, region=region),
        ]
