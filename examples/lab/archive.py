"""Writes what a simulated run recorded as an OTF2 archive, as a measurement system would."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from otf2_archives import MPI, OPENMP, USER, Archive, Events
from otf2_writer import NONE_32

from lab.costs import ALL_TO_ALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lab.engine import Event

#: OTF2's numbers of roles, by how a region begins, and of collective operations.
ROLES: Final = (
    ("!$omp parallel", 5), ("!$omp critical sblock", 13), ("!$omp critical", 12), ("!$omp implicit barrier", 16),
)  # fmt: skip
FILE_IO, FUNCTION = 27, 1
COLLECTIVES: Final = {
    "MPI_Barrier": 0, "MPI_Bcast": 1, "MPI_Gather": 2, "MPI_Scatter": 4, "MPI_Allgather": 6, "MPI_Alltoall": 8,
    "MPI_Alltoallv": 9, "MPI_Allreduce": 11, "MPI_Reduce": 12,
}  # fmt: skip
FILE_CALLS: Final = ("open", "close", "read", "write", "fsync", "aio_write", "aio_suspend")
_PLACE: Final = re.compile(r"@(.+):(\d+)$")
OPENMP_MODEL = 3


class Writer:
    """An archive of a run; ``sources`` are the file and the line of each user region."""

    def __init__(self, archive: Archive, ranks: int, sources: Mapping[str, tuple[str, int]]) -> None:
        self._archive, self._ranks, self._sources = archive, ranks, sources
        self._handles: dict[str, int] = {}
        self._groups: dict[tuple[int, ...], int] = {(): archive.world}
        self._team = archive.comm(range(ranks), "team")

    def write(self, place: int, log: Sequence[Event]) -> None:
        """Write the events of a location, in nanoseconds."""
        events = self._archive.events(place)
        for time_s, kind, values in sorted(log, key=lambda event: event[0]):
            self._event(events, round(time_s * 1e9), kind, values)

    def _event(self, events: Events, at: int, kind: str, values: tuple[int | str, ...]) -> None:
        world = self._archive.world
        match (kind, *values):
            case ("enter" | "leave", str(name)):
                (events.enter if kind == "enter" else events.leave)(at, self._region(name))
            case ("send", to, tag, size):
                events.mpi_send(at, to, world, tag, size)
            case ("recv", source, tag, size):
                events.mpi_recv(at, source, world, tag, size)
            case ("isend", to, tag, size, request):
                events.mpi_isend(at, to, world, tag, size, request)
            case ("irecv", source, tag, size, request):
                events.mpi_irecv(at, source, world, tag, size, request)
            case ("isend_done", request):
                events.mpi_isend_complete(at, request)
            case ("irecv_post", request):
                events.mpi_irecv_request(at, request)
            case ("collective_begin",):
                events.mpi_collective_begin(at)
            case ("collective", str(call), int(size), int(root), *members):
                moved = size * _pieces(call, len(members) or self._ranks)
                group = self._group(tuple(map(int, members)))
                place = NONE_32 if root < 0 else members.index(root) if members else root
                events.mpi_collective_end(at, COLLECTIVES[call], group, place, moved, moved)
            case ("met", int(call), int(size), request, *members):
                number, group = COLLECTIVES[ALL_TO_ALL[call]], self._group(tuple(map(int, members)))
                events.non_blocking_collective_complete(at, number, group, NONE_32, size, size, request)
            case ("io", str(file), size):
                events.io_operation_complete(at, self._handle(file), size, 0)
            case ("fork", threads):
                events.thread_fork(at, OPENMP_MODEL, threads)
            case ("join",):
                events.thread_join(at, OPENMP_MODEL)
            case ("begin",):
                events.thread_team_begin(at, self._team)
            case ("end",):
                events.thread_team_end(at, self._team)
            case ("icollective", _):
                pass  # the post is told by its region
            case _:
                raise ValueError(kind)

    def _group(self, members: tuple[int, ...]) -> int:
        """Return the communicator of some ranks, of all if there are none."""
        if members not in self._groups:
            self._groups[members] = self._archive.comm(members, f"group {len(self._groups)}")
        return self._groups[members]

    def _region(self, name: str) -> int:
        if name.startswith("MPI_"):
            return self._archive.region(name, MPI)
        if name.startswith("!$omp"):
            role = next(number for begin, number in ROLES if name.startswith(begin))
            place = _PLACE.search(name)
            file, line = (place[1], int(place[2])) if place else (None, 0)
            return self._archive.region(name, OPENMP, role, file, line)
        if name in FILE_CALLS:
            return self._archive.region(name, USER, FILE_IO)
        file, line = self._sources.get(name, ("main.c", 1))
        return self._archive.region(name, USER, FUNCTION, file, line)

    def _handle(self, file: str) -> int:
        if file not in self._handles:
            self._handles[file] = self._archive.io_handle(file)
        return self._handles[file]


def _pieces(call: str, ranks: int) -> int:
    """Return how many pieces a rank sends in a collective of so many."""
    return ranks if call in ("MPI_Alltoall", "MPI_Alltoallv", "MPI_Allgather") else 0 if call == "MPI_Barrier" else 1


def write_archive(
    path: Path,
    logs: Sequence[Sequence[Event]],
    *,
    ranks: int,
    threads: int,
    ranks_per_host: int | None,
    sources: Mapping[str, tuple[str, int]],
) -> Path:
    """Write the events of a run, by location, into the new directory ``path``; return the anchor file."""
    with Archive(path, ranks=ranks, threads=threads, ranks_per_node=ranks_per_host) as archive:
        writer = Writer(archive, ranks, sources)
        for place, log in enumerate(logs):
            writer.write(place, log)
    return path / "traces.otf2"
