"""Small OTF2 archives written with the ``otf2`` package, and what ``otf2-print`` says about archives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import otf2
from otf2.enums import GroupType, LocationGroupType, LocationType, Paradigm

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: The smallest chunks that OTF2 allows, in bytes.
CHUNK = 1 << 18
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


class Archive:
    """An archive being written: ``ranks`` processes of ``threads`` threads each, MPI_COMM_WORLD, named regions."""

    def __init__(self, path: Path, ranks: int = 1, threads: int = 1, resolution: int = 10**9) -> None:
        self._writer: Any = otf2.writer.Writer(
            str(path), timer_resolution=resolution, chunk_size_events=CHUNK, chunk_size_definitions=CHUNK
        )
        self.definitions: Any = self._writer.definitions
        node = self.definitions.system_tree_node("node7", class_name="node")
        groups = [
            self.definitions.location_group(
                f"rank {rank}", location_group_type=LocationGroupType.PROCESS, system_tree_parent=node
            )
            for rank in range(ranks)
        ]
        self.locations = [
            self.definitions.location(f"thread {thread}", type=LocationType.CPU_THREAD, group=group)
            for group in groups
            for thread in range(threads)
        ]
        mains = self.locations[::threads]
        self.definitions.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=mains)
        self.world = self.comm(range(ranks))
        self._regions: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._writer.close()

    def comm(self, members: Iterable[int], name: str = "comm") -> object:
        """Define a communicator of the processes at these places of MPI_COMM_WORLD."""
        return self.definitions.comm(name, group=self.group(members))

    def group(self, members: Iterable[int]) -> object:
        """Define a group of the processes at these places of MPI_COMM_WORLD."""
        return self.definitions.group("", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=list(members))

    def region(self, name: str, **details: object) -> object:
        """Define a region, or return it if it is there."""
        if name not in self._regions:
            self._regions[name] = self.definitions.region(name, **{"paradigm": Paradigm.USER, **details})
        return self._regions[name]

    def events(self, location: int = 0) -> object:
        """Return the event writer of a location, by its number."""
        return self._writer.event_writer_from_location(self.locations[location])
