"""Text and JSON that tools and programs print: read whole, packed by gzip or not, and recognized by both ends."""

from __future__ import annotations

import codecs
import gzip
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.model.errors import InputError
from advisor.support.limited_files import read_stream

if TYPE_CHECKING:
    import re

LIMIT: Final = 256 << 20  # bytes of a file, unpacked
#: What is looked at to recognize a file: programs print who they are first, and their tables last.
HEAD: Final = 16 << 10
TAIL: Final = 64 << 10
#: No more of a packed file is unpacked to recognize it.
_GLANCE: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
#: Windows' shells write UTF-16, which begins so.
_WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: No time, count or number of bytes in a table is as large as this.
_MOST: Final = 1e18


def read_head(path: Path, most: int = HEAD) -> bytes:
    """Return the first ``most`` bytes of a file, unpacked; nothing where it cannot be read."""
    try:
        with path.open("rb") as stream:
            start = stream.read(most)
        start = zlib.decompressobj(31).decompress(start, most) if start.startswith(_GZIP) else start
        return _narrow(start, start[:2])
    except (OSError, zlib.error):
        return b""


def read_ends(path: Path) -> bytes:
    """Return the beginning and the end of the file at ``path``, unpacked; nothing of what is no readable file."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as stream:
            head = stream.read(HEAD)
            if head.startswith(_GZIP):
                with gzip.open(path) as unpacked:
                    content = unpacked.read(_GLANCE)
                return content[:HEAD] + b"\n" + content[max(HEAD, len(content) - TAIL) :]
            size = stream.seek(0, 2)
            start = max(size - TAIL, len(head))
            stream.seek(start & ~1 if head[:2] in _WIDE else start)
            return b"\n".join(_narrow(end, head[:2]) for end in (head, stream.read(TAIL)))
    except (OSError, EOFError, zlib.error):
        return b""


def read_content(path: Path) -> bytes:
    """Return the whole file at ``path``, unpacked; raises ``InputError`` for what cannot be read or is too large."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == _GZIP
        with gzip.open(path) if packed else path.open("rb") as stream:
            content = read_stream(stream, LIMIT)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(path, f"cannot be read: {error}") from error
    if len(content) > LIMIT:
        raise InputError(path, f"is larger than {LIMIT:,} bytes, the limit for this format")
    return _narrow(content, content[:2])


def _narrow(content: bytes, mark: bytes) -> bytes:
    """Return UTF-8 without a mark of what begins with one, or is of a file that does; all else unchanged."""
    wide = _WIDE.get(mark)
    if wide is None:
        return content.removeprefix(codecs.BOM_UTF8)
    return content.removeprefix(mark).decode(wide, "replace").encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class PlainText:
    """The lines of a file, without their ends; bytes that are no UTF-8 are surrogate escapes."""

    path: Path
    lines: tuple[str, ...]

    def make_error(self, line: int, reason: str) -> InputError:
        """Return the error for the line of that index."""
        return InputError(self.path, reason, f"line {line + 1}")

    def find_line(self, pattern: re.Pattern[str], start: int = 0, stop: int | None = None) -> int | None:
        """Return the index of the first line that ``pattern`` matches from its beginning on, None without."""
        return next(self.find_lines(pattern, start, stop), None)

    def find_lines(self, pattern: re.Pattern[str], start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Yield the indices of the lines that ``pattern`` matches from their beginning on."""
        return (index for index, _ in self.find_matches(pattern, start, stop))

    def find_match(self, pattern: re.Pattern[str], start: int = 0, stop: int | None = None) -> re.Match[str] | None:
        """Return what ``pattern`` matches at the beginning of the first line where it does, None without."""
        return next((found for _, found in self.find_matches(pattern, start, stop)), None)

    def find_matches(
        self, pattern: re.Pattern[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, re.Match[str]]]:
        """Yield the index of each line that ``pattern`` matches from its beginning on, and what it matches there."""
        end = len(self.lines) if stop is None else min(stop, len(self.lines))
        return ((index, found) for index in range(start, end) if (found := pattern.match(self.lines[index])))

    def parse_number(self, text: str, line: int) -> float:
        """Return a number that is finite and not negative; raises ``InputError`` with the line for others."""
        try:
            value = float(text)
        except ValueError:
            raise self.make_error(line, f"{text[:80]!r} is not a number") from None
        if not (math.isfinite(value) and 0 <= value < _MOST):
            raise self.make_error(line, f"{text[:80]!r} is impossible here")
        return value


def read_plain_text(path: Path) -> PlainText:
    """Return the lines of the file at ``path``; raises ``InputError`` for what cannot be read or is too large."""
    text = read_content(path).decode("utf-8", "surrogateescape")
    # What a progress bar wrote over itself is what a terminal shows in the end.
    return PlainText(path, tuple(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")))
