"""The decoder of OTF2 events as one loop that numba compiles; it runs without Python's lock, chunk beside chunk.

All arithmetic on positions is signed and on values unsigned: numba makes a float of a mixture. Every read is checked
against the end of the chunk first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from advisor.formats.otf2 import layout, rows
from advisor.formats.otf2.chunks import END_OF_CHUNK, END_OF_FILE
from advisor.formats.otf2.cursor import LONG, UNDEFINED
from advisor.formats.otf2.id_lookup import EMPTY, SPREADING
from advisor.formats.otf2.rows import ChunkBytes, DecodedChunk, DecodingContext, DecodingError, EventRows
from advisor.support.compiling import jit

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: What ``_decode_chunk`` writes into its ``result``.
_ROWS, _EVENTS, _UNDEFINED, _END_RECORD, _POSITION, _VALUE, _RESULTS = range(7)
#: Error codes: places in ``rows.REASONS``, from 1 on.
_PAST_END, _UNKNOWN, _TOO_WIDE, _BEYOND, _NO_TIME, _TOO_MANY = range(1, len(rows.REASONS) + 1)
_TIMESTAMP, _ATTRIBUTES, _FIRST_EVENT = layout.TIMESTAMP, layout.ATTRIBUTES, layout.FIRST_EVENT
_TIMESTAMP_BYTES = layout.TIMESTAMP_BYTES
_NOWHERE, _REFERENCE, _PARTNER, _TAG, _SIZE, _MORE_SIZE, _REQUEST = map(int, layout.FieldTarget)
_NOTHING, _REGION, _COMMUNICATOR, _IO_HANDLE = map(int, layout.ReferenceKind)
_ALL_64: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_ALL_32: Final = np.uint64(0xFFFFFFFF)

#: Positions and sizes: numba keeps both signed.
Int = int | np.int64
Word = np.uint64
Number = np.int32
Octets = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]
Table = npt.NDArray[np.int16]
HashTable = tuple[npt.NDArray[np.int64], Numbers]
Lookups = tuple[HashTable, HashTable, HashTable]
Clock = tuple[Words, Words, npt.NDArray[np.int64], npt.NDArray[np.float64]]
Tables = tuple[Table, Table, Table, Table]
Fields = tuple[npt.NDArray[np.int64], Table, Table]
Columns = tuple[Words, Octets, Numbers, Numbers, Numbers, Numbers, npt.NDArray[np.int64], Words]

_inlined: Final = jit(allocating=False, inlined=True, without_gil=True)
_outer: Final = jit(allocating=False, without_gil=True)


def decode_events(chunk: ChunkBytes, context: DecodingContext, target: EventRows) -> DecodedChunk:
    """Write the events of a chunk into ``target``, whose length is the number of events that it may hold.

    Raises ``DecodingError`` where the bytes make no events.
    """
    result, counts = np.zeros(_RESULTS, dtype=np.int64), rows.make_counts()
    tables = (layout.SINGLE_WIDTH, layout.ROW_KIND, layout.ROW_ABOUT, layout.COUNTER)
    fields = (layout.FIELD_START, layout.FIELD_WIDTH, layout.FIELD_TARGET)
    clock = context.clock
    columns = (
        target.ticks, target.kind, target.region, target.comm, target.partner, target.tag, target.size, target.request,
    )  # fmt: skip
    lookups = context.regions.hash_table, context.comms.hash_table, context.files.hash_table
    code = _decode_chunk(
        chunk.data, chunk.start, chunk.size, chunk.big_endian, tables, fields,
        (clock.begin, clock.end, clock.offset, clock.slope), lookups, columns,
        np.zeros(len(layout.FieldTarget), dtype=np.uint64), counts, result,
    )  # fmt: skip
    if code:
        reason = rows.REASONS[code - 1].format(result[_VALUE])
        raise DecodingError(reason, int(result[_POSITION]))
    return DecodedChunk(
        int(result[_ROWS]), int(result[_EVENTS]), int(result[_UNDEFINED]), counts, int(result[_END_RECORD])
    )


@_inlined
def _load_integer(data: Octets, at: Int, size: Int, big: bool) -> Word:
    """Return the unsigned integer of ``size`` bytes at ``at``."""
    value = np.uint64(0)
    if big:
        for index in range(size):
            value = (value << np.uint64(8)) | np.uint64(data[at + index])
    else:
        for index in range(size):
            value |= np.uint64(data[at + index]) << np.uint64(8 * index)
    return value


@_inlined
def _load_time(data: Octets, at: Int, big: bool) -> Word:
    """Return the eight bytes at ``at`` as an unsigned integer; written out, they are a single load."""
    low = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
    low |= np.uint64(data[at + 2]) << np.uint64(16) | np.uint64(data[at + 3]) << np.uint64(24)
    high = np.uint64(data[at + 4]) | np.uint64(data[at + 5]) << np.uint64(8)
    high |= np.uint64(data[at + 6]) << np.uint64(16) | np.uint64(data[at + 7]) << np.uint64(24)
    return _load_integer(data, at, 8, big) if big else low | high << np.uint64(32)


@_inlined
def _look_up_number(table: HashTable, identity: Word) -> Number:
    """Return the number of an id by a hash table of ``Lookup``, -1 where it was never defined."""
    slots, values = table
    spread = (identity * np.uint64(SPREADING)) & _ALL_32
    slot = np.int64((spread * np.uint64(len(slots))) >> np.uint64(32))
    while slots[slot] != EMPTY:
        if slots[slot] == np.int64(identity):
            return np.int32(values[slot])
        slot = (slot + 1) & (len(slots) - 1)
    return np.int32(-1)


@_inlined
def _correct_time(time: Word, clock: Clock) -> Word:
    """Return a time with its clock corrected, as ``ClockCorrection.correct`` does."""
    begin, end, offset, slope = clock
    if len(begin) == 0:
        return time
    index = 0
    while index < len(begin) - 1 and end[index] < time:
        index += 1
    since = np.float64(time - begin[index]) if time >= begin[index] else -np.float64(begin[index] - time)
    return time + np.uint64(offset[index] + np.int64(np.rint(slope[index] * since)))


@_inlined
def _set_error(result: IntArray, code: Int, position: Int, value: Int) -> Int:
    result[_POSITION] = position
    result[_VALUE] = value
    return code


@_inlined
def _measure_record(data: Octets, at: Int, end: Int, width: Int, big: bool, result: IntArray) -> tuple[Int, Int, Int]:
    """Return where the content of the record at ``at`` begins and ends, and an error code or 0."""
    if end - at < 2:
        return at, at, _set_error(result, _PAST_END, at, 0)
    start, length = at + 2, np.int64(data[at + 1])
    if width:  # no length, but the size of the only value
        start = at + 1
        if length > width and length != UNDEFINED:
            return at, at, _set_error(result, _TOO_WIDE, start, length)
        length = np.int64(1) if length == UNDEFINED else length + 1
    elif length == LONG:
        if end - at < 10:
            return at, at, _set_error(result, _PAST_END, at, 0)
        start = at + 10
        length = np.int64(min(_load_integer(data, at + 2, 8, big), np.uint64(end)))
    if length > end - start:
        return at, at, _set_error(result, _PAST_END, at, 0)
    return start, start + length, 0


@_inlined
def _read_fields(
    data: Octets, at: Int, stop: Int, big: bool, own: tuple[Int, Int], fields: Fields, values: Words, result: IntArray
) -> Int:
    """Put the fields of a record into ``values`` by target; what an older writer left out is undefined."""
    _, widths, targets = fields
    for index in range(own[0], own[1]):
        width = np.int64(widths[index])
        value = _ALL_64 if width == 8 else _ALL_32
        if at < stop:
            size = np.int64(0) if width == 1 else np.int64(data[at])
            if size != UNDEFINED and size > 0:
                if size > width:
                    return _set_error(result, _TOO_WIDE, at, size)
                if size > stop - at - 1:
                    return _set_error(result, _BEYOND, at, 0)
                value = _load_integer(data, at + 1, size, big)
                at += size
            elif size == 0:
                value = np.uint64(0)
            at += 1
        values[targets[index]] = value
    return 0


@_inlined
def _write_call(
    data: Octets, at: Int, stop: Int, big: bool, columns: Columns, row: Int, time: Word, kind: Int, regions: HashTable
) -> bool | np.bool_:
    """Write the row of the start or end of a call, most of all events; return whether its region is undefined."""
    identity = _ALL_32 if data[at] == UNDEFINED else _load_integer(data, at + 1, stop - at - 1, big)
    number = _look_up_number(regions, identity)
    columns[0][row] = time
    columns[1][row] = kind
    columns[2][row] = number
    columns[3][row] = columns[4][row] = columns[5][row] = -1
    columns[6][row] = -1
    columns[7][row] = 0
    return number < 0


@_inlined
def _write_row(columns: Columns, row: Int, time: Word, kind: Int, about: Int, values: Words, lookups: Lookups) -> None:
    """Write the row of an event that is no call."""
    _, comms, files = lookups
    communicator = np.int32(-1)
    other = np.int32(values[_PARTNER])
    if about == _COMMUNICATOR:
        communicator = _look_up_number(comms, values[_REFERENCE] & _ALL_32)
    elif about == _IO_HANDLE:
        other = _look_up_number(files, values[_REFERENCE] & _ALL_32)
    known = values[_SIZE] != _ALL_64 and values[_MORE_SIZE] != _ALL_64
    columns[0][row] = time
    columns[1][row] = kind
    columns[2][row] = -1
    columns[3][row] = communicator
    columns[4][row] = other
    columns[5][row] = np.int32(values[_TAG])
    columns[6][row] = np.int64(values[_SIZE] + values[_MORE_SIZE]) if known else np.int64(-1)
    columns[7][row] = values[_REQUEST]


@_outer
def _decode_chunk(
    data: Octets, at: Int, end: Int, big: bool, tables: Tables, fields: Fields, clock: Clock, lookups: Lookups,
    columns: Columns, values: Words, counts: IntArray, result: IntArray,
) -> Int:  # fmt: skip
    """Decode a chunk; return 0 or the code of an error, with its place and value in ``result``."""
    single_width, row_kind, row_about, counter = tables
    time, timed = np.uint64(0), False
    row = events = undefined = 0
    while True:
        if at >= end:
            return _set_error(result, _PAST_END, at, 0)
        record = np.int64(data[at])
        if record == _TIMESTAMP:
            if end - at < _TIMESTAMP_BYTES:
                return _set_error(result, _PAST_END, at, 0)
            time, timed = _correct_time(_load_time(data, at + 1, big), clock), True
            at += _TIMESTAMP_BYTES
            continue
        if record in (END_OF_CHUNK, END_OF_FILE):
            break
        if record < _FIRST_EVENT and record != _ATTRIBUTES:
            return _set_error(result, _UNKNOWN, at, record)
        start, stop, code = _measure_record(data, at, end, np.int64(single_width[record]), big, result)
        if code:
            return code
        if record != _ATTRIBUTES:
            if events == len(columns[0]):
                return _set_error(result, _TOO_MANY, at, events)
            if not timed:
                return _set_error(result, _NO_TIME, at, 0)
            events += 1
            kind, about = row_kind[record], row_about[record]
            if about == _REGION:
                if _write_call(data, start, stop, big, columns, row, time, kind, lookups[0]):
                    undefined += 1
                row += 1
            elif kind:
                values[_PARTNER] = values[_TAG] = values[_SIZE] = _ALL_64
                values[_MORE_SIZE] = values[_REQUEST] = np.uint64(0)
                own = fields[0][record], fields[0][record + 1]
                code = _read_fields(data, start, stop, big, own, fields, values, result)
                if code:
                    return code
                _write_row(columns, row, time, kind, about, values, lookups)
                row += 1
            elif counter[record] >= 0:
                counts[counter[record]] += 1
        at = stop
    result[_ROWS], result[_EVENTS], result[_UNDEFINED], result[_END_RECORD] = row, events, undefined, record
    return 0
