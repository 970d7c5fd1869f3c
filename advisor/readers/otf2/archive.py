"""The files of an OTF2 archive: where they are, and how many records their chunk headers promise."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from advisor.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

#: How far below a directory an archive is looked for, and in how many directories of a level.
_DEPTH, _MOST_FOLDERS = 4, 1000
#: An anchor file begins with a record type, the byte order and the magic; a chunk with a type and the byte order.
_MAGIC = b"OTF2"
_CHUNK = 0x03
_ORDERS = {ord("B"): "<", ord("#"): ">"}
_HEADER = struct.calcsize("=BBQQ")


def find_anchor(path: Path) -> Path | None:
    """Return the anchor file at ``path`` or a few levels below, None when there is none.

    Raises ``InputError`` when several archives lie equally deep.
    """
    found = anchors(path)
    if len(found) > 1:
        names = ", ".join(str(file.relative_to(path)) for file in found[:3])
        raise InputError(path, f"{len(found)} OTF2 archives here ({names}{' …' if found[3:] else ''}): name one")
    return found[0] if found else None


def anchors(path: Path) -> list[Path]:
    """Return the anchor files at ``path``, or those nearest below it, a few levels deep."""
    if path.is_file():
        return [path] if path.suffix == ".otf2" else []
    level = [path]
    for _ in range(_DEPTH):
        inside = [entry for folder in level for entry in _entries(folder)]
        found = sorted(entry for entry in inside if entry.suffix == ".otf2" and entry.is_file())
        if found:
            return found
        level = [entry for entry in inside if entry.is_dir()][:_MOST_FOLDERS]
    return []


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def anchors_in(folder: Path) -> list[Path]:
    """Return what may be anchor files directly in a directory."""
    return [entry for entry in _entries(folder) if entry.suffix == ".otf2"]


def is_anchor(path: Path) -> bool:
    """Whether the file begins as an OTF2 anchor file does: words such as ``[OTF2]`` are messages of the library."""
    begin = _beginning(path)
    return len(begin) > 1 and begin[1] in _ORDERS and begin[2:].startswith(_MAGIC)


def is_part(path: Path) -> bool:
    """Whether the file begins as the files with events and definitions do."""
    begin = _beginning(path)
    return len(begin) > 1 and begin[0] == _CHUNK and begin[1] in _ORDERS


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(8)
    except OSError:
        return b""


def check_definitions(file: Path) -> None:
    """Raise ``InputError`` unless the file begins as one with definitions does."""
    try:
        with file.open("rb") as source:
            header = source.read(_HEADER)
    except OSError as error:
        raise InputError(file, f"cannot be read: {error.strerror}") from error
    if len(header) < _HEADER or header[0] != _CHUNK:
        raise InputError(file, "damaged: no valid chunk header here", "byte 0")


def events(anchor: Path, location: int) -> Path:
    """Return the path of a location's event file."""
    return anchor.with_suffix("") / f"{location}.evt"


def definitions(anchor: Path, location: int) -> Path:
    """Return the path of a location's own definitions."""
    return anchor.with_suffix("") / f"{location}.def"


def event_bytes(anchor: Path) -> int:
    """Return the size of all event files together, in bytes."""
    return sum(file.stat().st_size for file in anchor.with_suffix("").glob("*.evt"))


def promised(file: Path, chunk: int) -> int:
    """Return how many events an uncompressed event file holds by its chunk headers.

    Raises ``InputError`` with the byte where a header is damaged or the file cannot be read.
    """
    last = 0
    try:
        size = file.stat().st_size
        with file.open("rb") as source:
            for begin in range(0, size, chunk):
                source.seek(begin)
                _first, last = _header(file, begin, source.read(_HEADER), last)
    except OSError as error:
        raise InputError(file, f"cannot be read: {error.strerror}") from error
    if last > size:
        raise InputError(file, f"damaged: {last} events in {size} bytes are impossible", "byte 0")
    return last


def _header(file: Path, begin: int, header: bytes, before: int) -> tuple[int, int]:
    if len(header) == _HEADER and header[0] == _CHUNK and header[1] in _ORDERS:
        first, last = struct.unpack(_ORDERS[header[1]] + "QQ", header[2:])
        if first == before + 1 and last >= before:
            return first, last
    raise InputError(file, "damaged: no valid chunk header here", f"byte {begin}")
