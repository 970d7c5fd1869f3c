"""Is a log whole? Checked before any library reads it: the parts fill the file, and their checksums are right.

A log is a header and compressed parts: the job, the names of files, and one part for each module. zlib and bzip2 end
each stream with a checksum, and every part is made of one stream or several (one of each rank). Logs of format 3.41
have room for 64 modules, older ones for 16.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

FILE_LIMIT: Final = 1 << 30  # bytes of the file
UNPACKED_LIMIT: Final = 4 << 30  # bytes in all parts together
_CHUNK: Final = 1 << 20
#: Version (8 bytes), magic (8), kind of compression (1); then the flags of partial modules and the map of the parts.
_COMPRESSION_AT: Final = 16


class _HeaderLayout(NamedTuple):
    """Where the map of the parts begins, and how many modules it has room for."""

    map_at: int
    modules: int

    @property
    def size(self) -> int:
        """Bytes of the header: offset and length of the names and of each module, and the modules' versions."""
        return self.map_at + 16 * (1 + self.modules) + 4 * self.modules


_LAYOUTS: Final = {True: _HeaderLayout(32, 64), False: _HeaderLayout(24, 16)}
_SINCE: Final = b"3.41"
_ZLIB, _BZIP2, _PLAIN = 0, 1, 2


def read_unpacked_sizes(path: Path) -> frozenset[int]:
    """Return how many bytes the parts hold.

    Raises ``InputError`` with the place where a log is cut off, or its bytes are not those that were written.
    """
    content = read_limited(path, FILE_LIMIT)
    layout = _LAYOUTS[content[:4] >= _SINCE]
    if len(content) < layout.size:
        raise InputError(
            path, f"ends inside the header of {layout.size} bytes: the log is cut off", f"byte {len(content)}"
        )
    if content[_COMPRESSION_AT] not in (_ZLIB, _BZIP2, _PLAIN):
        raise InputError(path, "the kind of compression is unknown: the log is damaged", f"byte {_COMPRESSION_AT}")
    sizes: list[int] = []
    for start, end in _find_parts(path, content, layout):
        left = UNPACKED_LIMIT - sum(sizes)
        sizes.append(_unpacked_size(path, memoryview(content)[start:end], start, content[_COMPRESSION_AT], left))
    return frozenset(sizes)


def _find_parts(path: Path, content: bytes, layout: _HeaderLayout) -> list[tuple[int, int]]:
    """Return where the parts begin and end, in their order: without gaps from the header to the end of the file."""
    order = "<" if content[8] else ">"
    table = struct.unpack_from(f"{order}{2 * (1 + layout.modules)}Q", content, layout.map_at)
    places = list(zip(table[::2], table[1::2], strict=True))
    stored = sorted((start, start + length) for start, length in places if length)
    if not stored:
        raise InputError(path, "the header names no part: the log is damaged", f"byte {layout.map_at}")
    edges = {0, stored[0][0], *(end for _, end in stored)}
    for number, (start, length) in enumerate(places):
        if not length and start not in edges:
            place = f"byte {layout.map_at + 16 * number}"
            raise InputError(path, "an empty part begins inside another one: the log is damaged", place)
    parts = [(layout.size, stored[0][0]), *stored]
    for (_, end), (start, _) in pairwise(parts):
        if start != end:
            raise InputError(path, "the parts do not follow each other: the log is damaged", f"byte {end}")
    last = parts[-1][1]
    if last != len(content):
        reason = f"holds {len(content):,} of {last:,} bytes" if last > len(content) else "goes on behind its last part"
        raise InputError(path, f"{reason}: the log is damaged", f"byte {min(last, len(content))}")
    if parts[0][0] >= parts[0][1]:
        raise InputError(path, "holds no job: the log is damaged", f"byte {layout.size}")
    return parts


def _unpacked_size(path: Path, part: memoryview, start: int, compression: int, limit: int) -> int:
    """Return how many bytes a part holds, after a look at the checksum of each of its streams."""
    if compression == _PLAIN:
        return len(part)
    total, rest = 0, bytes(part)
    while rest:
        stream = zlib.decompressobj() if compression == _ZLIB else bz2.BZ2Decompressor()
        place = f"byte {start + len(part) - len(rest)}"
        total += _count_stream_bytes(path, stream, rest, place, limit - total)
        if not stream.eof:
            raise InputError(path, "a compressed part ends too early: the log is damaged", place)
        rest = stream.unused_data
    return total


def _count_stream_bytes(
    path: Path, stream: zlib._Decompress | bz2.BZ2Decompressor, data: bytes, place: str, limit: int
) -> int:
    """Return the bytes of one stream; it is unpacked piece by piece, none of which is kept."""
    total = 0
    try:
        while not stream.eof:
            piece = stream.decompress(data, _CHUNK)
            data = stream.unconsumed_tail if not isinstance(stream, bz2.BZ2Decompressor) else b""
            total += len(piece)
            if not piece and not data and not stream.eof:
                break
            if total > limit:
                raise InputError(path, f"unpacks to more than {UNPACKED_LIMIT:,} bytes", place)
    except (zlib.error, OSError) as error:
        raise InputError(path, f"a compressed part is damaged: {error}", place) from error
    return total
