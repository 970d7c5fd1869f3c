"""The decoder of OTF2 events in plain Python and NumPy: for small archives, and where numba is missing.

Python walks from record to record, since each tells where the next one begins; NumPy takes the fields of all events
of a type at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from advisor.formats.otf2 import layout, rows
from advisor.formats.otf2.chunks import END_OF_CHUNK, END_OF_FILE
from advisor.formats.otf2.cursor import LONG, UNDEFINED, Order
from advisor.formats.otf2.layout import FieldTarget, ReferenceKind
from advisor.formats.otf2.rows import ChunkBytes, DecodedChunk, DecodingContext, DecodingError, EventRows

if TYPE_CHECKING:
    from advisor.model.records import IntArray

_ALL_64 = np.uint64(0xFFFFFFFFFFFFFFFF)
#: What OTF2 calls undefined, by the width of the field in bytes.
_UNDEFINED = {4: np.uint64(0xFFFFFFFF), 8: _ALL_64}
_IS_SINGLE = (layout.SINGLE_WIDTH > 0).tolist()


def decode_events(chunk: ChunkBytes, context: DecodingContext, target: EventRows) -> DecodedChunk:
    """Write the events of a chunk into ``target``, whose length is the number of events that it may hold.

    Raises ``DecodingError`` where the bytes make no events.
    """
    records = _ChunkRecords(chunk, len(target.kind))
    ticks = context.clock.correct_times(records.read_times())
    kinds = layout.ROW_KIND[records.types]
    row_of = np.cumsum(kinds > 0) - 1
    chosen = kinds > 0
    count = int(np.count_nonzero(chosen))
    target.ticks[:count] = ticks[chosen]
    target.kind[:count] = kinds[chosen]
    for column in (target.region, target.comm, target.partner, target.tag):
        column[:count] = -1
    target.size[:count] = -1
    target.request[:count] = 0
    undefined = 0
    present = np.bincount(records.types, minlength=256)
    for record in np.flatnonzero((present > 0) & (layout.ROW_KIND > 0)).tolist():
        where = np.flatnonzero(records.types == record)
        undefined += _fill_columns(target, row_of[where], record, records.read_fields(where, record), context)
    counts = rows.make_counts()
    for record in np.flatnonzero((present > 0) & (layout.COUNTER >= 0)).tolist():
        counts[layout.COUNTER[record]] += present[record]
    events = int(present[layout.FIRST_EVENT :].sum())
    return DecodedChunk(count, events, undefined, counts, records.end_record)


def _fill_columns(
    target: EventRows, where: IntArray, record: int, fields: dict[int, npt.NDArray[np.uint64]], context: DecodingContext
) -> int:
    """Write the fields of the events of one type; return how many of them belong to undefined regions."""
    if FieldTarget.PARTNER in fields:
        target.partner[where] = fields[FieldTarget.PARTNER].astype(np.uint32).view(np.int32)
    if FieldTarget.TAG in fields:
        target.tag[where] = fields[FieldTarget.TAG].astype(np.uint32).view(np.int32)
    if FieldTarget.SIZE in fields:
        size = fields[FieldTarget.SIZE]
        if FieldTarget.MORE_SIZE in fields:
            more = fields[FieldTarget.MORE_SIZE]
            size = np.where((size == _ALL_64) | (more == _ALL_64), _ALL_64, size + more)
        target.size[where] = size.view(np.int64)
    if FieldTarget.REQUEST in fields:
        target.request[where] = fields[FieldTarget.REQUEST]
    about = layout.ROW_ABOUT[record]
    if about == ReferenceKind.NOTHING:
        return 0
    ids = fields[FieldTarget.REFERENCE].astype(np.uint32).astype(np.int64)
    if about == ReferenceKind.REGION:
        numbers = context.regions(ids)
        target.region[where] = numbers
        return int(np.count_nonzero(numbers < 0))
    if about == ReferenceKind.COMMUNICATOR:
        target.comm[where] = context.comms(ids)
    else:
        target.partner[where] = context.files(ids)
    return 0


class _ChunkRecords:
    """The records of a chunk but for timestamps: where they begin, their types, where their content begins and ends."""

    def __init__(self, chunk: ChunkBytes, most: int) -> None:
        self._chunk = chunk
        data = chunk.data
        order: Order = "big" if chunk.big_endian else "little"
        found, at_end = find_records(data[: chunk.size].tobytes(), chunk.start, order)
        self.begin = np.array(found, dtype=np.int64)
        self.types = data[self.begin]
        loads = np.ndarray((len(data) - 7,), ">u8" if chunk.big_endian else "<u8", buffer=data, strides=(1,))
        self._words = loads
        self._measure_records()
        self._check_records(at_end, most)
        self.end_record = int(data[at_end])

    def _measure_records(self) -> None:
        data, begin = self._chunk.data, self.begin
        width = layout.SINGLE_WIDTH[self.types]
        second = data[begin + 1]
        single = width > 0
        self.start = begin + np.where(single, 1, np.where(second == LONG, 10, 2))
        length = second.astype(np.int64)
        length[single] = np.where(second[single] == UNDEFINED, 1, second[single] + np.int64(1))
        for index in np.flatnonzero(~single & (second == LONG)).tolist():
            length[index] = min(int(self._words[min(begin[index] + 2, len(self._words) - 1)]), self._chunk.size)
        self.end = self.start + length
        wide = np.flatnonzero(single & (second > width) & (second != UNDEFINED))
        if len(wide):
            first = wide[0]
            raise DecodingError(rows.TOO_WIDE.format(second[first]), int(begin[first]) + 1)

    def _check_records(self, at_end: int, most: int) -> None:
        begin, size = self.begin, self._chunk.size
        if len(begin) and self.end[-1] > size:
            raise DecodingError(rows.PAST_END, int(begin[-1]))
        if at_end >= size:
            raise DecodingError(rows.PAST_END, size)
        odd = np.flatnonzero((self.types != layout.ATTRIBUTES) & (self.types < layout.FIRST_EVENT))
        if len(odd):
            raise DecodingError(rows.UNKNOWN_RECORD.format(self.types[odd[0]]), int(begin[odd[0]]))
        if self._chunk.data[at_end] not in (END_OF_CHUNK, END_OF_FILE):
            raise DecodingError(rows.UNKNOWN_RECORD.format(self._chunk.data[at_end]), at_end)
        events = np.flatnonzero(self.types != layout.ATTRIBUTES)
        if len(events) > most:
            raise DecodingError(rows.TOO_MANY.format(most), int(begin[events[most]]))

    def read_times(self) -> npt.NDArray[np.uint64]:
        """Return the recorded time of each record, in ticks: timestamps fill the gaps before records."""
        if not len(self.begin):
            return np.zeros(0, dtype=np.uint64)
        before = np.concatenate([[self._chunk.start], self.end[:-1]])
        stamped = self.begin > before
        latest = np.cumsum(stamped) - 1
        timeless = np.flatnonzero((latest < 0) & (self.types != layout.ATTRIBUTES))
        if len(timeless):
            raise DecodingError(rows.NO_TIME, int(self.begin[timeless[0]]))
        times = np.zeros(1 + np.count_nonzero(stamped), dtype=np.uint64)  # the first is of what comes before any time
        times[1:] = self._words[self.begin[stamped] - layout.TIMESTAMP_BYTES + 1]
        of_records: npt.NDArray[np.uint64] = times[latest + 1]
        return of_records

    def read_fields(self, where: IntArray, record: int) -> dict[int, npt.NDArray[np.uint64]]:
        """Return the values of the fields of the records ``where``, all of one type, by target."""
        end = self.end[where]
        at = self.start[where]
        values = {}
        for index in range(layout.FIELD_START[record], layout.FIELD_START[record + 1]):
            width, there = int(layout.FIELD_WIDTH[index]), at < end
            if width == 1:
                at = at + there
                continue
            value, size = self._read_packed(np.where(there, at, 0), width, there)
            values[int(layout.FIELD_TARGET[index])] = np.where(there, value, _UNDEFINED[width])
            at = np.where(there, at + 1 + size, at)
            beyond = np.flatnonzero(at > end)
            if len(beyond):
                raise DecodingError(rows.BEYOND_RECORD, int(self.begin[where[beyond[0]]]))
        return values

    def _read_packed(
        self, at: IntArray, width: int, there: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.uint64], IntArray]:
        """Return the packed integers at these places and how many bytes each takes behind its size byte."""
        size = self._chunk.data[at].astype(np.int64)
        undefined = size == UNDEFINED
        wide = np.flatnonzero((size > width) & ~undefined & there)
        if len(wide):
            raise DecodingError(rows.TOO_WIDE.format(size[wide[0]]), int(at[wide[0]]))
        size[undefined | ~there] = 0
        unused = (64 - 8 * size).astype(np.uint64)
        words = self._words[np.minimum(at + 1, len(self._words) - 1)].astype(np.uint64)
        # Shifting by 64 bits is undefined: it is done in two steps.
        half = unused >> np.uint64(1)
        if self._chunk.big_endian:
            value = words >> half >> (unused - half)
        else:
            value = words << half << (unused - half) >> half >> (unused - half)
        return np.where(undefined, _UNDEFINED[width], value), size


def find_records(data: bytes, start: int, order: Order) -> tuple[list[int], int]:
    """Return where records other than timestamps begin, and where the walk ended: at a record that ends the chunk.

    The walk ends, too, at a type that is no record, and behind the last byte where a record goes beyond it.
    """
    single, timestamp, stride = _IS_SINGLE, layout.TIMESTAMP, layout.TIMESTAMP_BYTES
    found: list[int] = []
    append, at = found.append, start
    try:
        while True:
            record = data[at]
            while record == timestamp:
                at += stride
                record = data[at]
            if single[record]:
                size = data[at + 1]
                append(at)
                at += 2 if size == UNDEFINED else 2 + size
            elif record > timestamp:
                length = data[at + 1]
                append(at)
                at += 2 + length if length != LONG else 10 + int.from_bytes(data[at + 2 : at + 10], order)
            else:
                break
    except IndexError:
        at = len(data)
    return found, at
