"""The files of an OTF2 archive: where they are, and which of them a file is."""

from __future__ import annotations

import os
import stat
from functools import lru_cache
from pathlib import Path

from advisor.formats.otf2.anchor import ORDER_AT, ORDERS
from advisor.formats.otf2.chunks import CHUNK
from advisor.model.errors import InputError

#: How far below a directory an archive is looked for, and in how many directories of a level.
_DEPTH, _MOST_FOLDERS = 4, 1000
#: In the time that the plain decoder takes for each file, whatever it holds, it reads so many bytes of one.
BYTES_A_FILE = 30_000
#: An anchor file begins with a record type, the byte order and the magic; a chunk with a type and the byte order.
_MAGIC = b"OTF2"


def find_anchor(path: Path) -> Path | None:
    """Return the anchor file at ``path`` or a few levels below, None when there is none.

    Raises ``InputError`` when several archives lie equally deep.
    """
    found = find_anchors(path)
    if len(found) > 1:
        names = ", ".join(str(file.relative_to(path)) for file in found[:3])
        raise InputError(path, f"{len(found)} OTF2 archives here ({names}{' …' if found[3:] else ''}): name one")
    return found[0] if found else None


def find_anchors(path: Path) -> list[Path]:
    """Return the anchor files at ``path``, or those nearest below it, a few levels deep."""
    if path.is_file():
        return [path] if path.suffix == ".otf2" else []
    level = [path]
    for _ in range(_DEPTH):
        inside = [entry for folder in level for entry in _list_entries(folder)]
        found = sorted(entry for entry in inside if entry.suffix == ".otf2" and entry.is_file())
        if found:
            return found
        level = [entry for entry in inside if entry.is_dir()][:_MOST_FOLDERS]
    return []


def _list_entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def list_anchors(folder: Path) -> list[Path]:
    """Return what may be anchor files directly in a directory."""
    return [entry for entry in _list_entries(folder) if entry.suffix == ".otf2"]


def is_anchor(path: Path) -> bool:
    """Whether the file begins as an OTF2 anchor file does: words such as ``[OTF2]`` are messages of the library."""
    begin = _read_head(path)
    return len(begin) > 1 and begin[ORDER_AT] in ORDERS and begin[2:].startswith(_MAGIC)


def is_part(path: Path) -> bool:
    """Whether the file begins as the files with events and definitions do."""
    begin = _read_head(path)
    return len(begin) > 1 and begin[0] == CHUNK and begin[ORDER_AT] in ORDERS


def _read_head(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""  # a pipe would wait for a writer
        with path.open("rb") as file:
            return file.read(8)
    except OSError:
        return b""


def list_files(anchor: Path) -> frozenset[str]:
    """Return the names of the files in the archive's folder; none where there is no folder."""
    try:
        with os.scandir(anchor.with_suffix("")) as entries:
            return frozenset(entry.name for entry in entries if entry.is_file())
    except OSError:
        return frozenset()


def event_file(anchor: Path, location: int) -> Path:
    """Return the path of a location's event file."""
    return _file_in(anchor, f"{location}.evt")


def definition_file(anchor: Path, location: int) -> Path:
    """Return the path of a location's own definitions."""
    return _file_in(anchor, f"{location}.def")


def _file_in(anchor: Path, name: str) -> Path:
    """Return a file of the archive's folder; thousands of them are asked for."""
    return _find_folder(anchor) / name


@lru_cache(maxsize=1)
def _find_folder(anchor: Path) -> Path:
    return type(anchor)(str(anchor).removesuffix(anchor.suffix))


def decoding_effort(anchor: Path) -> int:
    """Return the size of all event files together, in bytes, and what each costs the plain decoder beside them."""
    sizes = [file.stat().st_size for file in anchor.with_suffix("").glob("*.evt")]
    return sum(sizes) + BYTES_A_FILE * len(sizes)
