"""The binary files of version 4: sections by pointers, little-endian, strings that end in a zero byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError

MAJOR: Final = 4
HEADER: Final = 16  # bytes: mark and version
STRING_LIMIT: Final = 1 << 20
_U64: Final = struct.Struct("<Q")
_U32: Final = struct.Struct("<I")
_U16: Final = struct.Struct("<H")


@dataclass(frozen=True, slots=True)
class BinaryContent:
    """The bytes of a file; every place outside of it is an ``InputError`` with that place."""

    path: Path
    data: bytes

    def read_u64(self, place: int) -> int:
        """Return the unsigned number of 8 bytes at ``place``."""
        return int(_U64.unpack_from(self.data, self._require_inside(place, 8))[0])

    def read_u32(self, place: int) -> int:
        """Return the unsigned number of 4 bytes at ``place``."""
        return int(_U32.unpack_from(self.data, self._require_inside(place, 4))[0])

    def read_u16(self, place: int) -> int:
        """Return the unsigned number of 2 bytes at ``place``."""
        return int(_U16.unpack_from(self.data, self._require_inside(place, 2))[0])

    def read_u8(self, place: int) -> int:
        """Return the byte at ``place``."""
        return self.data[self._require_inside(place, 1)]

    def read_text(self, place: int) -> str:
        """Return the string at ``place``; bytes that are no UTF-8 become surrogate escapes."""
        end = self.data.find(b"\0", self._require_inside(place, 1), place + STRING_LIMIT)
        if end < 0:
            raise InputError(self.path, "a name has no end", f"byte {place}")
        return self.data[place:end].decode("utf-8", "surrogateescape")

    def structure_places(self, place: int, count: int, stride: int, least: int) -> range:
        """Return the places of ``count`` structures, each at least ``least`` bytes long."""
        if stride < least:
            raise InputError(self.path, f"structures of {stride} bytes, {least} are needed", f"byte {place}")
        self._require_inside(place, count * stride)
        return range(place, place + count * stride, stride)

    def _require_inside(self, place: int, size: int) -> int:
        if place < HEADER or place + size > len(self.data):
            raise InputError(self.path, f"points outside of the file, to byte {place}")
        return place


def check_signature(path: Path, head: bytes, tail: bytes, kind: str) -> None:
    """Raise ``InputError`` unless a file begins and ends as one of version 4 does, ``kind`` being ``meta`` or so."""
    if not head.startswith(f"HPCTOOLKIT{kind}".encode()):
        raise InputError(path, f"is not a {kind}.db of HPCToolkit", "byte 0")
    if head[14] != MAJOR:
        raise InputError(path, f"unsupported version {head[14]}.{head[15]}", "byte 14")
    if tail != f"_{kind}.db".encode():
        raise InputError(path, "the end of the file is missing")
