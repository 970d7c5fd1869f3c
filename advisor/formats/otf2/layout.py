"""Which OTF2 events become rows of a trace, and where their fields go; the tables that both decoders follow."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from advisor.trace.events import Kind

#: Records that are no events: the time of the events that follow, and attributes of the next event.
TIMESTAMP, ATTRIBUTES = 5, 6
TIMESTAMP_BYTES = 9
#: Lower record types are no events, higher ones are of kinds that this reader does not know.
FIRST_EVENT, LAST_EVENT = 10, 92


class FieldTarget(IntEnum):
    """Where a field goes: a column of the trace, or nowhere."""

    NOWHERE = 0
    REFERENCE = 1  # id of a region, a communicator or an I/O handle
    PARTNER = 2
    TAG = 3
    SIZE = 4
    MORE_SIZE = 5  # added to SIZE; the sum is undefined where one of them is
    REQUEST = 6


class ReferenceKind(IntEnum):
    """What the reference of an event is the id of."""

    NOTHING = 0
    REGION = 1
    COMMUNICATOR = 2
    IO_HANDLE = 3


class EventLayout(NamedTuple):
    """An event that becomes a row: its record type, its name in OTF2, its kind, and its fields in recorded order.

    ``fields`` are pairs of the width in bytes (1: a plain byte, 4 and 8: a packed integer) and the target.
    """

    record: int
    name: str
    kind: Kind
    about: ReferenceKind
    fields: tuple[tuple[int, FieldTarget], ...]


_MESSAGE = ((4, FieldTarget.PARTNER), (4, FieldTarget.REFERENCE), (4, FieldTarget.TAG), (8, FieldTarget.SIZE))
_COLLECTIVE = (
    (1, FieldTarget.NOWHERE),
    (4, FieldTarget.REFERENCE),
    (4, FieldTarget.PARTNER),
    (8, FieldTarget.SIZE),
    (8, FieldTarget.MORE_SIZE),
)
_REQUEST = (8, FieldTarget.REQUEST)
_REGION, _COMM, _NOTHING = ReferenceKind.REGION, ReferenceKind.COMMUNICATOR, ReferenceKind.NOTHING

EVENTS: Final = (
    EventLayout(12, "Enter", Kind.ENTER, _REGION, ((4, FieldTarget.REFERENCE),)),
    EventLayout(13, "Leave", Kind.LEAVE, _REGION, ((4, FieldTarget.REFERENCE),)),
    EventLayout(14, "MpiSend", Kind.SEND, _COMM, _MESSAGE),
    EventLayout(18, "MpiRecv", Kind.RECV, _COMM, _MESSAGE),
    EventLayout(15, "MpiIsend", Kind.ISEND, _COMM, (*_MESSAGE, _REQUEST)),
    EventLayout(16, "MpiIsendComplete", Kind.ISEND_DONE, _NOTHING, (_REQUEST,)),
    EventLayout(17, "MpiIrecvRequest", Kind.IRECV_POST, _NOTHING, (_REQUEST,)),
    EventLayout(19, "MpiIrecv", Kind.IRECV, _COMM, (*_MESSAGE, _REQUEST)),
    EventLayout(23, "MpiCollectiveEnd", Kind.COLLECTIVE, _COMM, _COLLECTIVE),
    EventLayout(86, "NonBlockingCollectiveComplete", Kind.COLLECTIVE, _COMM, (*_COLLECTIVE, _REQUEST)),
    EventLayout(24, "OmpFork", Kind.FORK, _NOTHING, ((4, FieldTarget.SIZE),)),
    EventLayout(25, "OmpJoin", Kind.JOIN, _NOTHING, ()),
    EventLayout(53, "ThreadFork", Kind.FORK, _NOTHING, ((1, FieldTarget.NOWHERE), (4, FieldTarget.SIZE))),
    EventLayout(54, "ThreadJoin", Kind.JOIN, _NOTHING, ()),
    EventLayout(55, "ThreadTeamBegin", Kind.TEAM_BEGIN, _NOTHING, ()),
    EventLayout(56, "ThreadTeamEnd", Kind.TEAM_END, _NOTHING, ()),
    EventLayout(
        78, "IoOperationComplete", Kind.IO, ReferenceKind.IO_HANDLE, ((4, FieldTarget.REFERENCE), (8, FieldTarget.SIZE))
    ),
)

#: Events that are only counted: what they are together, and their record types.
COUNTED: Final = (
    ("calling contexts", (66, 67, 68)),
    ("metrics", (31,)),
    ("parameters", (32, 33, 34)),
    ("one-sided transfers", (46, 47, 48)),
    ("cancelled requests", (21,)),
    ("events of unknown kinds", tuple(range(LAST_EVENT + 1, 256))),
)

#: Events without a length, which hold one packed integer, and its width in bytes.
_SINGLES = {12: 4, 13: 4, 16: 8, 17: 8, 20: 8, 21: 8, 24: 4, 28: 8, 29: 8, 30: 8}


def _build_table(values: dict[int, int], default: int, dtype: str) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    table = np.full(256, default, dtype=dtype)
    for record, value in values.items():
        table[record] = value
    return table


#: By record type: the width of the only value of records without a length (0: it has a length), the kind of the row
#: (0: none), what its reference is about, and which of ``COUNTED`` it is (-1: none).
SINGLE_WIDTH: Final = _build_table(_SINGLES, 0, "i2")
ROW_KIND: Final = _build_table({event.record: event.kind for event in EVENTS}, 0, "i2")
ROW_ABOUT: Final = _build_table({event.record: event.about for event in EVENTS}, ReferenceKind.NOTHING, "i2")
COUNTER: Final = _build_table({record: n for n, (_, records) in enumerate(COUNTED) for record in records}, -1, "i2")

#: Fields of row events: those of a record type lie at ``FIELD_START[type]:FIELD_START[type + 1]``.
_FIELDS = {event.record: event.fields for event in EVENTS}
_ALL_FIELDS = [pair for record in range(256) for pair in _FIELDS.get(record, ())]
FIELD_START: Final = np.cumsum([0, *(len(_FIELDS.get(record, ())) for record in range(256))])
FIELD_WIDTH: Final = np.array([width for width, _ in _ALL_FIELDS], dtype=np.int16)
FIELD_TARGET: Final = np.array([target for _, target in _ALL_FIELDS], dtype=np.int16)
