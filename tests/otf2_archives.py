"""Small OTF2 archives for tests, written by ``otf2_writer``, and what ``otf2-print`` says about archives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from otf2_writer import EVENTS, NONE_32, NONE_64, Order, definition_file, event_file, pack_record, write_archive

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import numpy.typing as npt

#: OTF2's numbers for paradigms, roles, operations and kinds of groups.
USER, OPENMP, MPI = 1, 3, 4
FUNCTION = 1
BARRIER, BCAST, ALLREDUCE = 0, 1, 8
COMM_LOCATIONS, COMM_GROUP = 4, 5
#: OTF2's numbers for what an id map is about.
REGION_IDS, COMM_IDS = 3, 6
_LINE = re.compile(r"^([A-Z_]+) +(\d+) +(\d+)  (.*)$")
_REGION = re.compile(r'Region: "(.*)" <\d+>$')
#: What otf2-print calls the events that become rows, and their kinds.
PRINTED = {
    "ENTER": "ENTER",
    "LEAVE": "LEAVE",
    "MPI_SEND": "SEND",
    "MPI_RECV": "RECV",
    "MPI_ISEND": "ISEND",
    "MPI_ISEND_COMPLETE": "ISEND_DONE",
    "MPI_IRECV_REQUEST": "IRECV_POST",
    "MPI_IRECV": "IRECV",
    "MPI_COLLECTIVE_END": "COLLECTIVE",
    "THREAD_FORK": "FORK",
    "THREAD_JOIN": "JOIN",
    "THREAD_TEAM_BEGIN": "TEAM_BEGIN",
    "THREAD_TEAM_END": "TEAM_END",
    "IO_OPERATION_COMPLETE": "IO",
}


class Printed(NamedTuple):
    """One event as otf2-print lists it: kind, ticks, name of the region."""

    kind: str
    ticks: int
    region: str | None


def listing(text: str) -> dict[int, list[Printed]]:
    """Return the events of a listing by location, in order; events that make no row are left out."""
    found: dict[int, list[Printed]] = {}
    for line in text.splitlines():
        parts = _LINE.match(line)
        if parts and parts[1] in PRINTED:
            region = _REGION.search(parts[4])
            row = Printed(PRINTED[parts[1]], int(parts[3]), region[1] if region else None)
            found.setdefault(int(parts[2]), []).append(row)
    return found


class Columns(NamedTuple):
    """Events in arrays: ticks, record types, fields as ``otf2_writer.event_file`` takes them."""

    time: npt.NDArray[np.uint64]
    record: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint64]


class Events:
    """The events of a location: ``enter(time, region)`` and so on, by the names in ``otf2_writer.EVENTS``."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, tuple[int, ...]]] = []
        self.local: list[bytes] = []
        self.given: Columns | None = None

    def columns(self) -> Columns:
        """Return the events as arrays: those that were ``given``, else the written ones."""
        if self.given is not None:
            return self.given
        values = np.zeros((len(self.rows), 6), dtype=np.uint64)
        for row, (_, _, fields) in enumerate(self.rows):
            values[row, : len(fields)] = fields
        time = np.array([time for time, *_ in self.rows], dtype=np.uint64)
        return Columns(time, np.array([EVENTS[name][0] for _, name, _ in self.rows], dtype=np.uint8), values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name not in EVENTS:
            raise AttributeError(name)

        def write(time: int, *fields: int) -> None:
            self.rows.append((time, name, fields))

        return write


class Archive:
    """An archive being written: ``ranks`` processes of ``threads`` threads each, MPI_COMM_WORLD, named regions."""

    def __init__(
        self,
        path: Path,
        ranks: int = 1,
        threads: int = 1,
        resolution: int = 10**9,
        order: Order = "little",
        ranks_per_node: int | None = None,
    ) -> None:
        self._path, self._resolution, self._order = path, resolution, order
        self._texts: list[bytes] = []
        self._tree: list[bytes] = []
        self._records: list[bytes] = []
        self._counts: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._regions: dict[str, int] = {}
        self._events: dict[int, Events] = {}
        self._node = self._define("node", 12, "IIII", self.string("node7"), self.string("node"), NONE_32)
        self.locations: list[int] = []
        self._named: list[tuple[int, int]] = []
        for rank in range(ranks):
            if ranks_per_node and rank and rank % ranks_per_node == 0:
                name = self.string(f"node{7 + rank // ranks_per_node}")
                self._node = self._define("node", 12, "IIII", name, self.string("node"), NONE_32)
            group = self._define("process", 13, "IIBII", self.string(f"rank {rank}"), 1, self._node, NONE_32)
            self.locations += [self._next("location") for _ in range(threads)]
            self._named += [(thread, group) for thread in range(threads)]
        self.group(self.locations[::threads], COMM_LOCATIONS)
        self.world = self.comm(range(ranks))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        columns = {place: events.columns() for place, events in self._events.items()}
        edges = [
            int(edge) for each in columns.values() if len(each.time) for edge in (each.time.min(), each.time.max())
        ]
        first, last = min(edges, default=0), max(edges, default=0)
        clock = pack_record(5, "QQQQ", (self._resolution, first, last - first, NONE_64), self._order)
        counts = {place: len(each.time) for place, each in columns.items()}
        threads = [
            pack_record(14, "QIBQI", (place, self.string(f"thread {n}"), 1, counts.get(place, 0), group), self._order)
            for place, (n, group) in zip(self.locations, self._named, strict=True)
        ]
        files = {
            place: (definition_file(self._events[place].local, self._order), event_file(*each, self._order))
            for place, each in columns.items()
        }
        definitions = [clock, *self._texts, *self._tree, *threads, *self._records]
        write_archive(self._path, definitions, files, self._order)

    def _next(self, what: str) -> int:
        self._counts[what] = self._counts.get(what, -1) + 1
        return self._counts[what]

    def _define(self, what: str, kind: int, fields: str, *values: Any) -> int:  # noqa: ANN401
        identity = self._next(what)
        records = {"string": self._texts, "node": self._tree, "process": self._tree}.get(what, self._records)
        records.append(pack_record(kind, fields, (identity, *values), self._order))
        return identity

    def string(self, text: str) -> int:
        """Define a string, or return it if it is there."""
        if text not in self._strings:
            self._strings[text] = self._define("string", 10, "IS", text)
        return self._strings[text]

    def comm(self, members: Iterable[int], name: str = "comm") -> int:
        """Define a communicator of the processes at these places of MPI_COMM_WORLD."""
        return self.comm_of(self.group(members), name)

    def comm_of(self, group: int, name: str = "comm") -> int:
        """Define a communicator of a group."""
        return self._define("comm", 22, "IIIII", self.string(name), group, NONE_32, 0)

    def group(self, members: Iterable[int], kind: int = COMM_GROUP, paradigm: int = MPI) -> int:
        """Define a group, unless told otherwise of the processes at these places of MPI_COMM_WORLD."""
        listed = list(members)
        values = self.string(""), 0, len(listed), listed, kind, paradigm, 0
        return self._define("group", 18, "IIBILBBI", *values)

    def region(
        self, name: str, paradigm: int = USER, role: int = FUNCTION, file: str | None = None, line: int = 0
    ) -> int:
        """Define a region, or return it if it is there."""
        if name not in self._regions:
            text = self.string(name)
            source = NONE_32 if file is None else self.string(file)
            fields = text, NONE_32, 0, source, line, line, text, role, paradigm, 0
            self._regions[name] = self._define("region", 15, "IIIBIIIIBBI", *fields)
        return self._regions[name]

    def io_handle(self, file: str) -> int:
        """Define a handle of a regular file."""
        regular = self._define("file", 38, "III", self.string(file), self._node)
        return self._define("handle", 40, "IIIBIII", self.string(""), regular, 0, 0, NONE_32, NONE_32)

    def events(self, location: int = 0) -> Events:
        """Return the event writer of a location, by its number."""
        return self._events.setdefault(self.locations[location], Events())

    def clock_offset(self, location: int, time: int, offset: int) -> None:
        """Record what the clock of a location was behind at some time, in ticks."""
        record = pack_record(6, "DQD", (time, offset, 0), self._order)
        self.events(location).local.append(record)

    def id_map(self, location: int, about: int, ids: list[int] | dict[int, int]) -> None:
        """Say which global ids the local ids of a location stand for: all from 0 on, or some."""
        sparse = isinstance(ids, dict)
        flat = [each for pair in ids.items() for each in pair] if isinstance(ids, dict) else ids
        record = pack_record(5, "BQBL", (about, len(ids), int(sparse), flat), self._order)
        self.events(location).local.append(record)
