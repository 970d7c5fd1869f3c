"""Host calls, device activities and iterations of a run as columns, filled by the readers of traces with devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray, Note


class Activity(IntEnum):
    """What a device does; where several run at a time the first of these counts."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2  # copies and fills of memory


class CallRole(IntEnum):
    """What a host call does; where calls are nested the first of these counts."""

    SYNCHRONIZE = 0  # returns when the device is done
    LAUNCH = 1
    COPY = 2
    ALLOCATE = 3
    RUNTIME = 4  # other calls of the device's runtime, which return at once
    START = 5  # start of the runtime, loading and compiling device code
    COMMUNICATE = 6  # between hosts: MPI, gloo
    INPUT_OUTPUT = 7
    LOAD_DATA = 8
    WORK = 9


#: Calls by which the host feeds a device: time between two of them is the host's own.
DEVICE_CALLS = (CallRole.SYNCHRONIZE, CallRole.LAUNCH, CallRole.COPY, CallRole.ALLOCATE, CallRole.RUNTIME)


class Direction(IntEnum):
    """Between which memories a copy moves data."""

    UNKNOWN = 0
    TO_DEVICE = 1
    TO_HOST = 2
    ON_DEVICE = 3
    BETWEEN_DEVICES = 4
    FILL = 5


@dataclass(frozen=True, slots=True)
class Device:
    """A device as one process uses it; ``is_host`` where the process's own threads compute in its place."""

    name: str
    rank: int
    number: int = 0
    host: str | None = None
    is_host: bool = False


@dataclass(frozen=True, slots=True)
class HostThread:
    """A thread of a process."""

    name: str
    rank: int
    host: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceActivities:
    """Columns of one length, sorted by start: what devices did.

    Times are seconds; ``kind`` is an ``Activity``; ``name`` indexes ``DeviceTrace.names``; ``call`` is the host call
    that issued it (index into ``DeviceTrace.calls``, -1 unknown); ``bytes`` -1 unknown; ``direction`` of copies;
    ``pageable`` marks copies from or to pageable memory; communication of one ``channel`` (-1: none known) is the same
    operations on all its devices, in order. Of kernels, -1 where unknown: ``fill_ppm`` blocks for each multiprocessor
    and ``occupancy_ppm`` share of the warps that a multiprocessor can hold, both times 10^6; ``local_bytes`` what a
    thread needs beside its registers.
    """

    start_s: FloatArray
    end_s: FloatArray
    device: IntArray
    stream: IntArray
    kind: IntArray
    name: IntArray
    call: IntArray
    bytes: IntArray
    direction: IntArray
    pageable: BoolArray
    channel: IntArray
    fill_ppm: IntArray
    occupancy_ppm: IntArray
    local_bytes: IntArray


@dataclass(frozen=True, slots=True)
class HostCalls:
    """Columns of one length, sorted by start: calls of host threads, nested properly within each thread."""

    start_s: FloatArray
    end_s: FloatArray
    thread: IntArray
    role: IntArray
    name: IntArray


@dataclass(frozen=True, slots=True)
class DeviceTrace:
    """A run with devices; times are seconds since its first event, on one clock for each process.

    ``marks_s`` (iterations + 1,) are the limits of the iterations by the first process, empty where none are marked.
    ``begin_s`` and ``end_s`` limit the run. ``paradigms`` are the programming models seen (``cuda``, ``pytorch`` …).
    Without ``copies_recorded`` that there are none means nothing. ``counts`` are sums over the processes of what only
    the reader of the trace can tell (``DeviceTraceBuilder.add_count``).
    """

    program: str
    tool: str
    names: tuple[str, ...]
    devices: tuple[Device, ...]
    threads: tuple[HostThread, ...]
    activities: DeviceActivities
    calls: HostCalls
    marks_s: FloatArray
    begin_s: float
    end_s: float
    paradigms: tuple[str, ...] = ()
    parameters: dict[str, str | float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    ranks_expected: int | None = None
    started: str | None = None
    copies_recorded: bool = True
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def length_s(self) -> float:
        """The wall time of the run."""
        return self.end_s - self.begin_s

    @property
    def device_ranks(self) -> IntArray:
        """The rank that uses each device."""
        return np.array([device.rank for device in self.devices], dtype=np.int64)

    @property
    def thread_ranks(self) -> IntArray:
        """The rank of each host thread."""
        return np.array([thread.rank for thread in self.threads], dtype=np.int64)

    @property
    def rank_count(self) -> int:
        """How many ranks use devices."""
        return len({device.rank for device in self.devices})


def find_previous_in_stream(activities: DeviceActivities) -> IntArray:
    """Return for each activity the one before it in its stream, -1 for the first."""
    order = np.lexsort((activities.start_s, activities.stream, activities.device))
    device, stream = activities.device[order], activities.stream[order]
    same = (device[1:] == device[:-1]) & (stream[1:] == stream[:-1])
    previous: IntArray = np.full(len(order), -1, dtype=np.int64)
    previous[order[1:][same]] = order[:-1][same]
    return previous


def invert_order(order: IntArray) -> IntArray:
    """Return where each row is once rows are ordered; a last element keeps -1 (unknown) as it is."""
    place: IntArray = np.full(len(order) + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
