"""The events of a run as columns, filled by trace readers; the latest are at hand for who wants a profile as well."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray, Note


class Kind(IntEnum):
    """What an event records, and how the columns of ``Trace`` are used for it."""

    ENTER = 1  # region, tag = how many further calls it stands for, which follow each other; or GOES_ON
    LEAVE = 2  # region
    SEND = 3  # partner, comm, tag, size; blocking
    RECV = 4  # partner, comm, tag, size; at completion
    ISEND = 5  # partner, comm, tag, size, request
    ISEND_DONE = 6  # request
    IRECV_POST = 7  # request
    IRECV = 8  # partner, comm, tag, size, request; at completion
    COLLECTIVE = 9  # comm, partner = root (or -1), size = bytes sent + received; at its end
    FORK = 10  # size = threads asked for
    JOIN = 11
    TEAM_BEGIN = 12
    TEAM_END = 13
    IO = 14  # partner = index into files (or -1), size = bytes, tag as of ENTER; at completion
    ONE_SIDED = 15  # partner, comm, size = bytes written to or read from the partner's memory; at its start


#: The tag of an enter whose call goes on with the one before, as a further piece of what that hands over.
GOES_ON: Final = -2
#: The columns of ``Trace`` with one value for each event, and the types of these as numpy names them.
COLUMNS: Final = {
    "time_s": "f8", "kind": "u1", "region": "i4", "comm": "i4", "partner": "i4", "tag": "i4", "size": "i8",
    "request": "u8",
}  # fmt: skip
SENDS = (Kind.SEND, Kind.ISEND)
RECEIVES = (Kind.RECV, Kind.IRECV)
#: Events that move bytes between processes.
COMMUNICATING = (*SENDS, *RECEIVES, Kind.COLLECTIVE, Kind.ONE_SIDED)


def are_kinds(kind: npt.NDArray[np.uint8], *wanted: Kind) -> npt.NDArray[np.bool_]:
    """Return which events are of one of these kinds; a hundred times as fast as ``numpy.isin`` on bytes."""
    return reduce(or_, (kind == each for each in wanted))


class Role(IntEnum):
    """What kind of work a region is; decides which category its seconds belong to."""

    USER = 0
    INIT = 1
    FINALIZE = 2
    BARRIER = 3
    ALL_TO_ALL = 4  # every rank needs every other: allreduce, alltoall, allgather …
    ONE_TO_ALL = 5
    ALL_TO_ONE = 6
    SCAN = 7
    SEND = 8  # blocking
    RECV = 9
    SENDRECV = 10
    WAIT = 11  # wait and test calls
    POST = 12  # non-blocking start: isend, irecv, start
    RMA = 13
    COMM_OTHER = 14  # communicator management and the like: collective, unmatched
    LOCAL = 15  # calls that talk to nobody: comm_rank, wtime
    IO = 16
    OMP_PARALLEL = 17
    OMP_BARRIER = 18  # explicit and implicit
    OMP_WORK = 19  # loops, sections, single, tasks
    OMP_LOCK = 20  # critical, atomic, ordered, locks
    THREAD = 21  # starting and joining threads by hand
    TOOL = 22  # the measurement system itself
    ROOT = 23  # the program as a whole: work on a process's first thread, idleness on others
    OS = 24  # taken by the operating system: asleep, or without a core


#: Whose seconds are synchronization but for what they wait.
SYNCHRONIZING_ROLES = (Role.BARRIER, Role.OMP_BARRIER, Role.OMP_LOCK, Role.THREAD)


@dataclass(frozen=True, slots=True)
class Location:
    """One thread of execution: its rank, its number within the rank, the node it ran on."""

    name: str
    rank: int
    thread: int = 0
    host: str | None = None


@dataclass(frozen=True, slots=True)
class TraceRegion:
    """A region as defined in the trace; equal regions of all processes are merged."""

    name: str
    role: Role
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """All events of a run, sorted by location, in recorded order within each.

    Event columns all have the length n: ``time_s`` (seconds since the recorded start of the trace, each
    process by its own clock until ``clocks.corrected``), ``kind`` (``Kind``), ``region`` (index into ``regions``, -1 if
    none), ``comm`` (index into ``communicators``, -1 if unknown), ``partner`` (rank, or see ``Kind``; -1 none),
    ``tag``, ``size`` (bytes, -1 unknown), ``request``. ``first`` (locations + 1,) delimits the locations:
    events of location l are ``first[l]:first[l + 1]``. ``communicators`` lists the members of each as ranks, in the
    order of the communicator; communicators with the same members are one. ``ticks_s`` is the timer's
    resolution, ``language`` that of the program (``c``, ``cxx``, ``fortran``) where the trace tells it. A trace is
    ``cpu_timed`` where regions of the role ``OS`` hold all the time in which computation had no core. It is
    ``one_clock`` where its times are not those of processes' own clocks, so that none needs a correction.
    """

    program: str
    tool: str
    locations: tuple[Location, ...]
    regions: tuple[TraceRegion, ...]
    communicators: tuple[tuple[int, ...], ...]
    files: tuple[str, ...]
    first: IntArray
    time_s: FloatArray
    kind: npt.NDArray[np.uint8]
    region: npt.NDArray[np.int32]
    comm: npt.NDArray[np.int32]
    partner: npt.NDArray[np.int32]
    tag: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    request: npt.NDArray[np.uint64]
    ticks_s: float = 1e-9
    parameters: dict[str, str | float] = field(default_factory=dict)
    language: str | None = None
    notes: tuple[Note, ...] = ()
    cpu_timed: bool = False
    one_clock: bool = False

    @property
    def ranks(self) -> int:
        """The number of processes."""
        return len({location.rank for location in self.locations})


class _Latest:
    """What was read last."""

    path: Path | None = None
    trace: Trace | None = None


def keep_trace(path: Path, trace: Trace) -> Trace:
    """Return ``trace``, read from ``path``, and keep it until somebody takes it or another trace is kept."""
    _Latest.path, _Latest.trace = path, trace
    return trace


def take_trace(path: Path) -> Trace | None:
    """Return the trace that was kept of ``path`` and forget it; None, and forget whatever it is, for another one."""
    kept = _Latest.trace if path == _Latest.path else None
    _Latest.path = _Latest.trace = None
    return kept
