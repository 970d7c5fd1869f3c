"""What the anchor file of an OTF2 archive says about the other files: sizes of chunks, counts, and who wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.formats.otf2.cursor import Cursor, Order, read_file
from advisor.model.errors import InputError

_MAGIC = b"\x03%cOTF2\0"
#: Where the byte order stands in an anchor file and in the header of a chunk, and what it is called in Python.
ORDER_AT = 1
ORDERS: dict[int, Order] = {ord("B"): "little", ord("#"): "big"}
_POSIX, _SION = 1, 2
_UNCOMPRESSED = 1
_SMALLEST_CHUNK, _LARGEST_CHUNK = 1 << 18, 1 << 24
_END = 2
#: Most properties that an anchor file may list.
_MOST_PROPERTIES = 1 << 16


@dataclass(frozen=True, slots=True)
class Otf2Anchor:
    """The sizes of chunks in bytes, the number of global definitions, and the tool that wrote the archive."""

    event_chunk: int
    definition_chunk: int
    definitions: int
    creator: str


def read_anchor(path: Path) -> Otf2Anchor:
    """Return what the anchor file says; raises ``InputError`` where it is damaged or its archive cannot be read."""
    data = read_file(path)
    if len(data) < len(_MAGIC) or data[ORDER_AT] not in ORDERS or not data.startswith(_MAGIC % data[ORDER_AT]):
        raise InputError(path, "not an OTF2 anchor file", "byte 0")
    cursor = Cursor(path, data, ORDERS[data[ORDER_AT]], position=len(_MAGIC) - 1)
    version = cursor.read_raw(1)
    cursor.read_raw(1 + 3)  # version of the trace format and of the library that wrote it
    event_chunk, definition_chunk = cursor.read_raw(8), cursor.read_raw(8)
    _check_chunks(path, event_chunk, definition_chunk)
    _check_storage(path, substrate=cursor.read_raw(1), compression=cursor.read_raw(1))
    cursor.read_raw(8)  # number of locations, which the definitions tell
    definitions = cursor.read_raw(8)
    _machine, creator, _description = cursor.read_text(), cursor.read_text(), cursor.read_text()
    if version >= 2:
        _skip_properties(cursor)
    if version >= 3:
        cursor.read_raw(8)  # numbers of snapshots and thumbnails
    if cursor.read_raw(1) != _END:
        raise cursor.make_error("damaged: the anchor file has no end mark", cursor.position - 1)
    return Otf2Anchor(event_chunk, definition_chunk, definitions, creator)


def _skip_properties(cursor: Cursor) -> None:
    count = cursor.read_raw(4)
    if count > _MOST_PROPERTIES:
        raise cursor.make_error(f"damaged: {count} properties are impossible", cursor.position - 4)
    for _ in range(2 * count):  # a name and a value each
        cursor.read_text()
    cursor.read_raw(8)  # the archive's identifier


def _check_chunks(path: Path, *sizes: int) -> None:
    for size in sizes:
        if not _SMALLEST_CHUNK <= size <= _LARGEST_CHUNK:
            raise InputError(path, f"damaged: chunks of {size} bytes are impossible")


def _check_storage(path: Path, substrate: int, compression: int) -> None:
    if substrate == _SION:
        reason = "its events lie in a SIONlib container: record again with SCOREP_TRACING_USE_SION=false"
        raise InputError(path, f"cannot be read: {reason} (no OTF2 tool converts it)")
    if substrate != _POSIX:
        raise InputError(path, f"cannot be read: its files are stored in an unknown way ({substrate})")
    if compression != _UNCOMPRESSED:
        reason = "its files are compressed: record again with SCOREP_TRACING_COMPRESS=false"
        raise InputError(path, f"cannot be read: {reason} (no OTF2 tool converts them)")
