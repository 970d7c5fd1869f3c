"""Rows of a trace made from the records of a Dimemas trace, each with the record it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.formats import number_lines
from advisor.formats.dimemas.records import OPERATIONS, RECORDED, DimemasRecords, RecordKind
from advisor.formats.paraver import call_pairing, catalogue
from advisor.formats.paraver.catalogue import EventCatalogue
from advisor.formats.paraver.labels import Labels
from advisor.trace import spool
from advisor.trace.events import COLUMNS, Kind, Location, Role, Trace, TraceRegion
from advisor.trace.matching import COLLECTIVE_ROLES
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.number_lines import Columns
    from advisor.model.records import IntArray

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
_MESSAGES: Final = (RecordKind.SEND, RecordKind.RECEIVE)
#: Columns of the beginnings and ends of calls.
_CALLS: Final[dict[str, type[Any]]] = {"index": np.int64, "kind": np.uint8, "region": np.int32, "group": np.int16}


def complete_labels(names: Labels) -> Labels:
    """Return the names, with those of well-known calls where there is no ``.pcf`` file."""
    if names.types:
        return names
    values = {kind: {value: f"MPI_{name}" for value, name in known.items()} for kind, known in _KNOWN.items()}
    return Labels(dict.fromkeys(_KNOWN, "MPI call"), values | {catalogue.IO_CALL: _FILES}, complete=True)


class TraceRows:
    """The rows of the trace, each with its place before, at or behind the record it stands for.

    They are made one thread after the other, so that those of one thread at most are in memory.
    """

    def __init__(self, records: DimemasRecords, names: Labels) -> None:
        self._records = records
        self._known = EventCatalogue(complete_labels(names))
        self._names = names
        self._broken = 0
        self._operations = [TraceRegion(*classify_region(name)) for name in OPERATIONS]
        self._joint = self._find_records(lambda part: records.kind[part] == RecordKind.COLLECTIVE)
        self._calls, self._calls_first = self._collect_calls()

    def _iterate_threads(self) -> Iterator[tuple[int, slice[int, int, None]]]:
        """Yield each thread's number and records; records that lie on disk do not stay in memory."""
        for number in range(len(self._records.rank)):
            yield number, slice(int(self._records.first[number]), int(self._records.first[number + 1]))
            spool.release_memory(getattr(self._records, name) for name in RECORDED)

    def _find_records(self, holds: Callable[[slice[int, int, None]], npt.NDArray[np.bool_]]) -> IntArray:
        """Return the records for which something holds."""
        return np.concatenate([np.flatnonzero(holds(part)) + part.start for _, part in self._iterate_threads()])

    def _locate_records(self, index: IntArray) -> IntArray:
        """Return the thread of each record."""
        return np.searchsorted(self._records.first, index, side="right") - 1

    def _compute_own_time(self, part: slice[int, int, None]) -> IntArray:
        """Return the computation of a thread up to and with each of its records, nanoseconds."""
        bursts = self._records.kind[part] == RecordKind.BURST
        return np.cumsum(np.where(bursts, self._records.amount[part], 0))

    def _compute_row_times(self, part: slice[int, int, None], order: IntArray) -> IntArray:
        """Return the computation of a thread up to each of its rows, nanoseconds: what is before a burst is without."""
        own = self._compute_own_time(part)
        index, place = order // PLACES - part.start, order % PLACES
        done: IntArray = np.where(place < AT, np.r_[0, own][index], own[index])
        return done

    def _own_time_at(self, index: IntArray) -> IntArray:
        """Return the computation up to each of the given records, which ascend, of the thread that each belongs to."""
        edges = np.searchsorted(index, self._records.first).tolist()
        parts = zip(pairwise(edges), self._iterate_threads(), strict=True)
        return np.concatenate(
            [self._compute_own_time(part)[index[low:high] - part.start] for (low, high), (_, part) in parts]
        )

    def _total_own_time(self) -> IntArray:
        """Return the computation of each thread."""
        return np.array(
            [int(self._compute_own_time(part)[-1:].sum()) for _, part in self._iterate_threads()], dtype=np.int64
        )

    def _make_rows(self, index: IntArray, place: int, kind: int | Column, **columns: Column) -> Columns:
        count = len(index)
        filled: Columns = {name: np.full(count, -1, dtype=np.int64) for name in _NAMES}
        return filled | {"order": PLACES * index + place, "kind": np.broadcast_to(kind, (count,)), **columns}

    @staticmethod
    def _join_rows(parts: list[Columns]) -> Columns:
        order = np.concatenate([part["order"] for part in parts])
        sort = np.argsort(order, kind="stable")
        return {name: np.concatenate([part[name] for part in parts])[sort] for name in parts[0]}

    def _collect_calls(self) -> tuple[Columns, IntArray]:
        """Return beginnings and ends of the calls that events tell of, thread after thread, and where each begins."""
        grown, first = number_lines.GrowingColumns(_CALLS), [0]
        for _, part in self._iterate_threads():
            grown.append(**self._find_call_edges(part))
            first.append(grown.used)
        calls = grown.take_columns()
        parts = [slice(low, high) for low, high in pairwise(first)]
        kind, region, group = (calls[name] for name in ("kind", "region", "group"))
        call_pairing.drop_crossing_groups(kind, group, self._known.own, parts)
        for part in parts:
            faults = call_pairing.close_calls(kind[part], region[part], group[part], self._known.nested)
            self._broken += faults.unopened_calls + faults.unclosed_calls
            spool.release_memory(calls.values())
        return calls, np.array(first)

    def _find_call_edges(self, part: slice[int, int, None]) -> Columns:
        """Return beginnings and ends of a thread's calls; only the beginnings know their region."""
        records, known = self._records, self._known
        events = (records.kind[part] == RecordKind.EVENT) & np.isin(records.code[part], known.calls)
        index = np.flatnonzero(events) + part.start
        code, value = records.code[index].astype(np.int64), records.amount[index]
        group = np.searchsorted(known.calls, code)
        follower = np.minimum(index + 1, len(records.kind) - 1)
        lines = np.zeros(len(index), dtype=np.int64)
        for function, line in known.lines.items():
            mine = (code == function) & (records.kind[follower] == RecordKind.EVENT) & (records.code[follower] == line)
            lines[mine] = records.amount[follower[mine]]
        entering = value != 0
        region = np.full(len(index), -1, dtype=np.int32)
        region[entering] = known.number_regions(group[entering], value[entering], lines[entering])
        return {"index": index, "kind": np.where(entering, Kind.ENTER, Kind.LEAVE), "region": region, "group": group}

    def _build_call_rows(self, number: int) -> Columns:
        """Return beginnings and ends of a thread's calls, with the regions of both."""
        part = slice(self._calls_first[number], self._calls_first[number + 1])
        kept = np.flatnonzero(self._calls["kind"][part] != call_pairing.NOTHING)
        found = {name: column[part][kept] for name, column in self._calls.items()}
        return self._make_rows(found.pop("index"), AT, found.pop("kind"), **found)

    def _slice_collectives(self, number: int) -> slice[int, int, None]:
        """Return the place of a thread's collective operations among all of them."""
        low, high = np.searchsorted(self._joint, self._records.first[number : number + 2]).tolist()
        return slice(low, high)

    def _find_roles(self) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the role of each collective operation, and whether no call around it tells one."""
        own = np.array([known.role for known in self._operations], dtype=np.int64)[self._records.code[self._joint]]
        found = [self._find_surrounding_roles(number) for number in range(len(self._records.rank))]
        told = np.concatenate(found) if found else own
        return np.where(told >= 0, told, own), told < 0

    def _find_surrounding_roles(self, number: int) -> IntArray:
        """Return the roles that the calls around a thread's collective operations tell, -1 where they do not."""
        role = self._find_open_roles(number, self._joint[self._slice_collectives(number)])
        return np.where(np.isin(role, (*COLLECTIVE_ROLES, Role.INIT, Role.COMM_OTHER)), role, -1)

    def _find_open_roles(self, number: int, records: IntArray) -> IntArray:
        """Return the role of the MPI call that is open at each of a thread's ``records``, -1 where none is."""
        calls = self._build_call_rows(number)
        mpi = np.isin(self._known.calls, catalogue.MPI_CALLS)[calls["group"]]
        named = np.array([known.role for known in self._known.regions], dtype=np.int64)
        index, role = calls["order"][mpi] // PLACES, named[calls["region"][mpi]]
        last = np.searchsorted(index, records)
        entering = np.r_[False, calls["kind"][mpi] == Kind.ENTER][last]
        return np.where(entering, np.r_[-1, role][last], -1)

    def _build_root_rows(self, number: int) -> list[Columns]:
        """Return beginning and end of a thread, unless it has no records."""
        first, after = self._records.first[number : number + 2]
        if first == after:
            return []
        program = np.zeros(1, dtype=np.int64)
        begin, end = (np.array([index], dtype=np.int64) for index in (first, after - 1))
        return [
            self._make_rows(begin, FIRST, Kind.ENTER, region=program),
            self._make_rows(end, LAST, Kind.LEAVE, region=program),
        ]

    def _assemble_trace(
        self, rows: Callable[[int], tuple[Columns, IntArray]], communicators: tuple[tuple[int, ...], ...]
    ) -> Trace:
        """Return the trace; ``rows`` gives those of a thread, in order, and their times in nanoseconds."""
        records = self._records
        messages = sum(int(np.isin(records.kind[part], _MESSAGES).sum()) for _, part in self._iterate_threads())
        room = len(self._calls["kind"]) + 3 * (len(self._joint) + messages) + 2 * len(records.rank)
        result = {name: number_lines.empty_column(room, kind) for name, kind in COLUMNS.items()}
        first = np.zeros(len(records.rank) + 1, dtype=np.int64)
        for number, _ in self._iterate_threads():
            found, times_ns = rows(number)
            new = slice(first[number], first[number] + len(times_ns))
            found |= {"time_s": times_ns / 1e9, "request": np.maximum(found["request"], 0)}
            for name, column in result.items():
                column[new] = found[name]
            first[number + 1] = new.stop
            spool.release_memory((*result.values(), *self._calls.values()))
        columns: dict[str, Any] = {name: column[: first[-1]] for name, column in result.items()}
        titles = zip(records.rank.tolist(), records.thread.tolist(), strict=True)
        return Trace(
            program=catalogue.find_program(self._names),
            tool="Dimemas",
            locations=tuple(Location(f"{rank}.{thread}", rank, thread) for rank, thread in titles),
            regions=tuple(self._known.regions),
            communicators=communicators,
            files=(),
            first=first,
            **columns,
        )

    def _build_bare_calls(self, joint: IntArray, bare: npt.NDArray[np.bool_]) -> list[Columns]:
        """Return calls of their own for the collective operations that stand in none."""
        alone = joint[bare]
        return self._build_own_calls(alone, self._operations, self._records.code[alone])

    def _build_own_calls(self, index: IntArray, regions: Sequence[TraceRegion], which: Column) -> list[Columns]:
        """Return around each of the records ``index`` a call of its own, of the region ``regions[which]``."""
        numbers = [self._known.regions.setdefault(region, len(self._known.regions)) for region in regions]
        region = np.array(numbers, dtype=np.int64)[which]
        return [
            self._make_rows(index, BEFORE, Kind.ENTER, region=region),
            self._make_rows(index, BEHIND, Kind.LEAVE, region=region),
        ]
