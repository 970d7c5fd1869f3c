"""Which OTF2 events become rows, and how; standard library only, because the reading process starts with it.

A row is the packed structure ``ROW``: time (ticks), size (bytes), request, reference (id of a region, a
communicator or an I/O handle), partner, tag, and the event's index in ``EVENTS``. ``ALL_32`` and ``ALL_64`` are
OTF2's "undefined".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.readers.libotf2.library import Library

ALL_32 = 0xFFFFFFFF
ALL_64 = 0xFFFFFFFFFFFFFFFF
ROW = struct.Struct("=QQQIIII")

Fields = tuple[int, int, int, int, int]  # size, request, reference, partner, tag


class Event(NamedTuple):
    """An OTF2 event: its name in the library, the ``Kind`` it becomes, its own arguments, the row they make."""

    name: str
    kind: str
    arguments: str
    row: Callable[..., Fields]


def reference(reference: int) -> Fields:
    """Row of an event that refers to a region."""
    return ALL_64, 0, reference, ALL_32, ALL_32


def message(partner: int, comm: int, tag: int, size: int) -> Fields:
    """Row of a message sent or received in one call."""
    return size, 0, comm, partner, tag


def posted(partner: int, comm: int, tag: int, size: int, request: int) -> Fields:
    """Row of a message with a request."""
    return size, request, comm, partner, tag


def request(request: int) -> Fields:
    """Row of an event that names only a request."""
    return ALL_64, request, ALL_32, ALL_32, ALL_32


def collective(_operation: int, comm: int, root: int, sent: int, received: int) -> Fields:
    """Row of a finished collective operation."""
    size = (sent + received) & ALL_64 if sent != ALL_64 and received != ALL_64 else ALL_64
    return size, 0, comm, root, ALL_32


def non_blocking(_operation: int, comm: int, root: int, sent: int, received: int, request: int) -> Fields:
    """Row of a finished non-blocking collective operation."""
    size = (sent + received) & ALL_64 if sent != ALL_64 and received != ALL_64 else ALL_64
    return size, request, comm, root, ALL_32


def fork(_paradigm: int, threads: int) -> Fields:
    """Row of the start of a team of threads."""
    return threads, 0, ALL_32, ALL_32, ALL_32


def omp_fork(threads: int) -> Fields:
    """Row of the start of a team of threads, as OTF2 1 records it."""
    return threads, 0, ALL_32, ALL_32, ALL_32


def bare() -> Fields:
    """Row of an event without data."""
    return ALL_64, 0, ALL_32, ALL_32, ALL_32


def ignored(_reference: int) -> Fields:
    """Row of an event whose data are not used."""
    return ALL_64, 0, ALL_32, ALL_32, ALL_32


def io(handle: int, size: int, _matching: int) -> Fields:
    """Row of a finished I/O operation."""
    return size, 0, handle, ALL_32, ALL_32


EVENTS = (
    Event("Enter", "ENTER", "I", reference),
    Event("Leave", "LEAVE", "I", reference),
    Event("MpiSend", "SEND", "IIIQ", message),
    Event("MpiRecv", "RECV", "IIIQ", message),
    Event("MpiIsend", "ISEND", "IIIQQ", posted),
    Event("MpiIsendComplete", "ISEND_DONE", "Q", request),
    Event("MpiIrecvRequest", "IRECV_POST", "Q", request),
    Event("MpiIrecv", "IRECV", "IIIQQ", posted),
    Event("MpiCollectiveEnd", "COLLECTIVE", "BIIQQ", collective),
    Event("NonBlockingCollectiveComplete", "COLLECTIVE", "BIIQQQ", non_blocking),
    Event("OmpFork", "FORK", "I", omp_fork),
    Event("OmpJoin", "JOIN", "", bare),
    Event("ThreadFork", "FORK", "BI", fork),
    Event("ThreadJoin", "JOIN", "B", ignored),
    Event("ThreadTeamBegin", "TEAM_BEGIN", "I", ignored),
    Event("ThreadTeamEnd", "TEAM_END", "I", ignored),
    Event("IoOperationComplete", "IO", "IQQ", io),
)

#: Events that are only counted: what they are together, their names in the library.
COUNTED = (
    ("calling contexts", ("CallingContextEnter", "CallingContextLeave", "CallingContextSample")),
    ("metrics", ("Metric",)),
    ("parameters", ("ParameterString", "ParameterInt", "ParameterUnsignedInt")),
    ("one-sided transfers", ("RmaPut", "RmaGet", "RmaAtomic")),
    ("cancelled requests", ("MpiRequestCancelled",)),
    ("events of unknown kinds", ("Unknown",)),
)

#: What precedes an event's own arguments: location, time, position, user data, attributes.
LEADING = "QQQPP"


class PlainRows:
    """Rows filled by callbacks in Python, for traces too small for a compiler to pay."""

    def __init__(self, library: Library) -> None:
        self.data = None
        self.counts = [0] * len(COUNTED)
        self._rows = bytearray()
        self.callbacks = [library.callback(LEADING + event.arguments, self._appender(event)) for event in EVENTS]
        self.counters = [library.callback(LEADING, self._counter(index)) for index in range(len(COUNTED))]

    def take(self) -> bytearray:
        """Return the rows since the last call, packed."""
        used = self._rows[:]
        self._rows.clear()
        return used

    def _appender(self, event: Event) -> Callable[..., int]:
        extend, pack, make, index = self._rows.extend, ROW.pack, event.row, EVENTS.index(event)

        def append(_location: int, time: int, _position: int, _data: int, _attributes: int, *arguments: int) -> int:
            extend(pack(time, *make(*arguments), index))
            return 0

        return append

    def _counter(self, index: int) -> Callable[..., int]:
        counts = self.counts

        def count(*_arguments: int) -> int:
            counts[index] += 1
            return 0

        return count
