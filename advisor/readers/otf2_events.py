"""Which OTF2 events become rows, and how; standard library only, because the reading process starts with it.

A row is the packed structure ``ROW``: time (ticks), size (bytes), request, reference (id of a region, a
communicator or an I/O handle), partner, tag, and the event's index in ``EVENTS``. ``ALL_32`` and ``ALL_64`` are
OTF2's "undefined".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ALL_32 = 0xFFFFFFFF
ALL_64 = 0xFFFFFFFFFFFFFFFF
ROW = struct.Struct("=QQQIIII")

Fields = tuple[int, int, int, int, int]  # size, request, reference, partner, tag


@dataclass(frozen=True, slots=True)
class Event:
    """An OTF2 event: its name in the library, the ``Kind`` it becomes, its own arguments, the row they make."""

    name: str
    kind: str
    arguments: str
    row: Callable[..., Fields]


def _reference(reference: int) -> Fields:
    return ALL_64, 0, reference, ALL_32, ALL_32


def _message(partner: int, comm: int, tag: int, size: int) -> Fields:
    return size, 0, comm, partner, tag


def _posted(partner: int, comm: int, tag: int, size: int, request: int) -> Fields:
    return size, request, comm, partner, tag


def _request(request: int) -> Fields:
    return ALL_64, request, ALL_32, ALL_32, ALL_32


def _collective(_operation: int, comm: int, root: int, sent: int, received: int) -> Fields:
    size = (sent + received) & ALL_64 if sent != ALL_64 and received != ALL_64 else ALL_64
    return size, 0, comm, root, ALL_32


def _non_blocking(_operation: int, comm: int, root: int, sent: int, received: int, request: int) -> Fields:
    size = (sent + received) & ALL_64 if sent != ALL_64 and received != ALL_64 else ALL_64
    return size, request, comm, root, ALL_32


def _fork(_paradigm: int, threads: int) -> Fields:
    return threads, 0, ALL_32, ALL_32, ALL_32


def _omp_fork(threads: int) -> Fields:
    return threads, 0, ALL_32, ALL_32, ALL_32


def _nothing(*_ignored: int) -> Fields:
    return ALL_64, 0, ALL_32, ALL_32, ALL_32


def _io(handle: int, size: int, _matching: int) -> Fields:
    return size, 0, handle, ALL_32, ALL_32


EVENTS = (
    Event("Enter", "ENTER", "I", _reference),
    Event("Leave", "LEAVE", "I", _reference),
    Event("MpiSend", "SEND", "IIIQ", _message),
    Event("MpiRecv", "RECV", "IIIQ", _message),
    Event("MpiIsend", "ISEND", "IIIQQ", _posted),
    Event("MpiIsendComplete", "ISEND_DONE", "Q", _request),
    Event("MpiIrecvRequest", "IRECV_POST", "Q", _request),
    Event("MpiIrecv", "IRECV", "IIIQQ", _posted),
    Event("MpiCollectiveEnd", "COLLECTIVE", "BIIQQ", _collective),
    Event("NonBlockingCollectiveComplete", "COLLECTIVE", "BIIQQQ", _non_blocking),
    Event("OmpFork", "FORK", "I", _omp_fork),
    Event("OmpJoin", "JOIN", "", _nothing),
    Event("ThreadFork", "FORK", "BI", _fork),
    Event("ThreadJoin", "JOIN", "B", _nothing),
    Event("ThreadTeamBegin", "TEAM_BEGIN", "I", _nothing),
    Event("ThreadTeamEnd", "TEAM_END", "I", _nothing),
    Event("IoOperationComplete", "IO", "IQQ", _io),
)

#: What precedes an event's own arguments: location, time, position, user data, attributes.
LEADING = "QQQPP"


def appender(rows: bytearray, index: int) -> Callable[..., int]:
    """Return a callback for ``EVENTS[index]`` that appends one packed row to ``rows``."""
    extend, pack, make = rows.extend, ROW.pack, EVENTS[index].row

    def append(_location: int, time: int, _position: int, _data: int, _attributes: int, *arguments: int) -> int:
        extend(pack(time, *make(*arguments), index))
        return 0

    return append
