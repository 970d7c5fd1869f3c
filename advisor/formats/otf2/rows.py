"""What decoding a chunk of events needs, and what it gives: the same for the plain and the compiled decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.formats.otf2.layout import COUNTED

if TYPE_CHECKING:
    from advisor.formats.otf2.clock_correction import ClockCorrection
    from advisor.formats.otf2.id_lookup import IdLookup
    from advisor.model.records import IntArray

#: Bytes behind a chunk that may be read without meaning.
PADDING = 8
#: Names and types of the columns, in the order of ``EventRows``.
ROW_TYPES = {
    "ticks": "u8", "kind": "u1", "region": "i4", "comm": "i4", "partner": "i4", "tag": "i4", "size": "i8",
    "request": "u8",
}  # fmt: skip
# Reasons, with the offending value.
PAST_END = "ends inside a record"
UNKNOWN_RECORD = "{} is not a record type"
TOO_WIDE = "an integer of {} bytes is impossible"
BEYOND_RECORD = "a value goes beyond the end of its record"
NO_TIME = "an event without a time"
TOO_MANY = "more than the {} events that its chunk header counts"
#: By the error code of the compiled decoder, which begins at 1.
REASONS = (PAST_END, UNKNOWN_RECORD, TOO_WIDE, BEYOND_RECORD, NO_TIME, TOO_MANY)


class EventRows(NamedTuple):
    """Columns of the rows of events, all of one length: as in ``trace.events.Trace``, with times in ticks.

    ``comm`` is the number of the communicator's id and ``partner`` as recorded, until all locations have been read.
    """

    ticks: npt.NDArray[np.uint64]
    kind: npt.NDArray[np.uint8]
    region: npt.NDArray[np.int32]
    comm: npt.NDArray[np.int32]
    partner: npt.NDArray[np.int32]
    tag: npt.NDArray[np.int32]
    size: npt.NDArray[np.int64]
    request: npt.NDArray[np.uint64]

    def slice_rows(self, start: int, end: int) -> EventRows:
        """Return the rows from ``start`` to ``end``, as views."""
        new = slice(start, end)
        return EventRows(
            self.ticks[new], self.kind[new], self.region[new], self.comm[new],
            self.partner[new], self.tag[new], self.size[new], self.request[new],
        )  # fmt: skip


class DecodingContext(NamedTuple):
    """What the ids and the times of a location mean."""

    regions: IdLookup
    comms: IdLookup
    files: IdLookup
    clock: ClockCorrection


class ChunkBytes(NamedTuple):
    """The bytes of a chunk and ``PADDING`` more, how many are its own, where its records begin, and their order."""

    data: npt.NDArray[np.uint8]
    size: int
    start: int
    big_endian: bool


class DecodedChunk(NamedTuple):
    """What was in a chunk: rows, events in all, events of undefined regions, counts of ``COUNTED``, the last record.

    ``head`` is a checksum of its first bytes.
    """

    rows: int
    events: int
    undefined: int
    counts: IntArray
    end_record: int
    head: int = 0


class DecodingError(Exception):
    """The bytes make no events: reason, and the byte within the chunk."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason)
        self.position = position


def make_rows(count: int) -> EventRows:
    """Return room for ``count`` rows, to be written."""
    return EventRows(**{name: np.empty(count, dtype=kind) for name, kind in ROW_TYPES.items()})


def make_counts() -> IntArray:
    """Return a zero for each of ``COUNTED``."""
    return np.zeros(len(COUNTED), dtype=np.int64)
