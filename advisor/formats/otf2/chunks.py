"""The chunks that OTF2's files of events and definitions consist of."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from advisor.formats.otf2.anchor import ORDER_AT, ORDERS
from advisor.formats.otf2.cursor import Cursor, Order, read_file
from advisor.model.errors import InputError

#: A chunk begins with this byte, the byte order and the numbers of its first and last event.
CHUNK = 0x03
HEADER = struct.calcsize("=BBQQ")
#: Records that end a chunk, and the last chunk.
END_OF_CHUNK, END_OF_FILE = 0, 2
#: An event takes at least a record type and one byte of length or content.
_SMALLEST_EVENT = 2


class EventChunk(NamedTuple):
    """A piece of an event file that can be decoded by itself: where it lies and how many events its header counts."""

    file: Path
    begin: int
    size: int
    big_endian: bool
    events: int
    last: bool


def find_chunks(file: Path, chunk_bytes: int) -> list[EventChunk]:
    """Return the chunks of an event file.

    Raises ``InputError`` with the byte where a header is damaged, promises more events than its bytes can hold, or
    where the file cannot be read.
    """
    chunks: list[EventChunk] = []
    before = 0
    try:
        with file.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            for begin in range(0, max(size, 1), chunk_bytes):
                source.seek(begin)
                order, first, last = _read_header(file, begin, source.read(HEADER))
                if first != before + 1 and not first == last == before == 0:
                    raise _make_header_error(file, begin)
                length = min(chunk_bytes, size - begin)
                events = last - before
                if not 0 <= events * _SMALLEST_EVENT <= length - HEADER:
                    raise InputError(
                        file, f"damaged: {events} events in {length} bytes are impossible", f"byte {begin}"
                    )
                chunks.append(EventChunk(file, begin, length, order == "big", events, begin + length == size))
                before = last
    except OSError as error:
        raise InputError(file, f"cannot be read: {error.strerror}") from error
    return chunks


def _read_header(file: Path, begin: int, header: bytes) -> tuple[Order, int, int]:
    if len(header) < HEADER or header[0] != CHUNK or header[ORDER_AT] not in ORDERS:
        raise _make_header_error(file, begin)
    order = ORDERS[header[ORDER_AT]]
    first, last = struct.unpack("<QQ" if order == "little" else ">QQ", header[2:])
    return order, first, last


def _make_header_error(file: Path, begin: int) -> InputError:
    return InputError(file, "damaged: no valid chunk header here", f"byte {begin}")


def read_definition_records(file: Path, chunk_bytes: int) -> Iterator[tuple[int, Cursor]]:
    """Yield the type and the content of every record of a file with definitions, in recorded order.

    Raises ``InputError`` with the byte where the file is damaged, and where it cannot be read.
    """
    yield from split_definition_records(file, read_file(file), chunk_bytes)


def split_definition_records(file: Path, data: bytes, chunk_bytes: int) -> Iterator[tuple[int, Cursor]]:
    """Yield the records of ``data``, all that a file with definitions holds; raises as ``read_definition_records``."""
    for begin in range(0, max(len(data), 1), chunk_bytes):
        order, _, _ = _read_header(file, begin, data[begin : begin + HEADER])
        end = min(begin + chunk_bytes, len(data))
        cursor = Cursor(file, data, order, begin + HEADER, end)
        while (kind := cursor.read_raw(1)) != END_OF_CHUNK:
            if kind == END_OF_FILE:
                if end < len(data):
                    raise InputError(file, "damaged: goes on behind its last chunk", f"byte {end}")
                return
            yield kind, cursor.read_record()
    raise InputError(file, "damaged: ends between two chunks", f"byte {len(data)}")
