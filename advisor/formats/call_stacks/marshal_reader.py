"""Python's marshal format, as far as ``cProfile -o`` uses it: never by Python's own reader, which trusts its input."""

from __future__ import annotations

import shlex
import struct
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

#: Statistics of ``profile`` hold code that was run, which only the Python that wrote them can read.
_PRINT: Final = "let the Python that wrote it print what is read: python -c "
_PRINTED: Final = "import pstats, sys; pstats.Stats(sys.argv[1]).print_stats()"
#: Objects inside each other, and in all.
_DEPTH: Final = 20
_MOST: Final = 10_000_000
_REFERENCED: Final = 0x80
_END: Final = object()


class MarshalReader:
    """Reads one object from ``content``; raises ``InputError`` with the byte of what is damaged."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._content = path, content
        self._at = 0
        self._count = 0
        self._references: list[object] = []
        self._interned: list[str] = []  # of Python 2, which refers to nothing else

    def read_object(self) -> object:
        """Return the object, which must fill the file."""
        found = self._read(0)
        if self._at != len(self._content):
            raise self._make_error("more follows behind the end")
        return found

    def _make_error(self, reason: str) -> InputError:
        return InputError(self._path, f"no statistics of cProfile: {reason}", f"byte {self._at}")

    def _take(self, size: int) -> bytes:
        found = self._content[self._at : self._at + size]
        if len(found) < size:
            raise self._make_error("the file is cut off")
        self._at += size
        return found

    def _take_int(self) -> int:
        return int(struct.unpack("<i", self._take(4))[0])

    def _read(self, depth: int) -> object:
        self._count += 1
        if depth > _DEPTH or self._count > _MOST:
            raise self._make_error("too many objects")
        code = self._take(1)[0]
        kind = chr(code & ~_REFERENCED)
        place = len(self._references)
        if code & _REFERENCED:
            self._references.append(None)
        found = self._read_kind(kind, depth)
        if code & _REFERENCED:
            self._references[place] = found
        return found

    def _read_kind(self, kind: str, depth: int) -> object:
        if kind in "0N":
            return _END if kind == "0" else None
        if kind in "zZ":
            return self._take(self._take(1)[0]).decode("latin-1")
        if kind in "aAuts":
            size = self._take_int()
            text = self._take(max(size, 0)).decode("utf-8", "surrogateescape")
            self._interned += [text] if kind == "t" else []
            return text
        if kind == "R":
            number = self._take_int()
            if not 0 <= number < len(self._interned):
                raise self._make_error(f"there is no text {number}")
            return self._interned[number]
        if kind == "i":
            return self._take_int()
        if kind == "I":
            return int(struct.unpack("<q", self._take(8))[0])
        if kind == "l":
            return self._read_long()
        if kind == "g":
            return float(struct.unpack("<d", self._take(8))[0])
        if kind == "r":
            number = self._take_int()
            if not 0 <= number < len(self._references):
                raise self._make_error(f"there is no object {number}")
            return self._references[number]
        if kind in "()":
            size = self._take(1)[0] if kind == ")" else self._take_int()
            return tuple(self._read(depth + 1) for _ in range(min(max(size, 0), _MOST)))
        if kind == "{":
            return self._read_dict(depth)
        raise self._make_error(
            f"an object of kind {kind!r}; {_PRINT}{shlex.join((_PRINTED, str(self._path)))} > table.txt"
        )

    def _read_long(self) -> int:
        size = self._take_int()
        digits = struct.unpack(f"<{abs(size)}H", self._take(2 * abs(size))) if abs(size) < 10 else ()
        value: int = sum(digit << 15 * place for place, digit in enumerate(digits))
        return -value if size < 0 else value

    def _read_dict(self, depth: int) -> dict[object, object]:
        found: dict[object, object] = {}
        while (key := self._read(depth + 1)) is not _END:
            value = self._read(depth + 1)
            try:
                found[key] = value
            except TypeError:
                raise self._make_error("a key that is none") from None
        return found
