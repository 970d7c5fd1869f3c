"""Lines of numbers between colons, as Paraver and Dimemas write them, into columns, many lines at a time.

Both functions that take a block apart give the same: one by numpy, one compiled by numba. No object is made for a line
or a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from advisor.model.errors import InputError
from advisor.trace import spool

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: Bytes read at a time, and the longest line that is believed.
BLOCK: Final = 1 << 20
LONGEST_LINE: Final = 1 << 25
#: Digits that a 64-bit number may have; what is larger wraps around.
MOST_DIGITS: Final = 20
#: From this many digits on a number may be too large for 64 bits with a sign.
_SAFE_DIGITS: Final = 19
_COLON, _DOT, _NEWLINE, _MINUS, _ZERO = (ord(sign) for sign in ":.\n-0")
NEWLINE: Final = b"\n"
#: Rows of long columns that are in memory together.
ROWS = 1 << 18
_ONE_SIGN: Final = bytes.maketrans(b".\n", b"::")
_NUMERIC: Final = b"0123456789:.\n-"

Octets = npt.NDArray[np.uint8]
Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class NumberLines:
    """The numbers of complete lines.

    ``values`` holds all of them one after the other, ``width`` how many digits each has, ``first`` (lines + 1,) where
    each line begins in them; ``line`` is the number of the first line in the file, from 1 on.
    """

    values: IntArray
    width: npt.NDArray[np.uint8]
    first: IntArray
    line: int


class GrowingColumns:
    """Columns of one length that grow; the first ``used`` rows are valid. Many rows lie on disk."""

    def __init__(self, kinds: dict[str, type[Any]]) -> None:
        self.used = 0
        self._room = 0
        self._columns: Columns = {name: np.empty(0, dtype=kind) for name, kind in kinds.items()}

    def append(self, **columns: npt.NDArray[Any]) -> None:
        """Add rows; every column must be given."""
        end = self.used + len(next(iter(columns.values())))
        if end > self._room:
            self._grow_room(max(2 * self._room, end))
        for name, values in columns.items():
            self._columns[name][self.used : end] = values
        if self.used // ROWS != end // ROWS:
            spool.release_memory(self._columns.values())
        self.used = end

    def take_columns(self) -> Columns:
        """Return the finished columns and forget them."""
        taken = {name: column[: self.used] for name, column in self._columns.items()}
        self._columns = {name: column[:0].copy() for name, column in taken.items()}
        self._room = self.used = 0
        return taken

    def _grow_room(self, room: int) -> None:
        for name, old in self._columns.items():
            new = empty_column(room, old.dtype)
            for block in row_blocks(self.used):
                new[block] = old[block]
                spool.release_memory((old, new))
            self._columns[name] = new
        self._room = room


def empty_column(rows: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a new column of zeros, on disk where it is a long one."""
    return spool.make_column(rows, kind, 0, spooled=rows >= spool.SPOOLED_EVENTS)


def row_blocks(rows: int) -> Iterator[slice[int, int, None]]:
    """Yield all rows in blocks."""
    for begin in range(0, rows, ROWS):
        yield slice(begin, min(begin + ROWS, rows))


def sort_columns(key: str, columns: Columns, count: int) -> tuple[Columns, IntArray]:
    """Return the other columns sorted by ``key``, numbers below ``count``, and where each number begins (count + 1,).

    Rows of one number stay in their order. No more than a block of rows is in memory, where columns lie on disk.
    """
    numbers = columns[key]
    sizes = np.zeros(count, dtype=np.int64)
    for block in row_blocks(len(numbers)):
        sizes += np.bincount(numbers[block], minlength=count)
    first = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    result = {name: empty_column(len(numbers), column.dtype) for name, column in columns.items() if name != key}
    place = first[:-1].copy()
    for block in row_blocks(len(numbers)):
        order = np.argsort(numbers[block].astype(np.uint16) if count < 1 << 16 else numbers[block], kind="stable")
        sizes = np.bincount(numbers[block], minlength=count)
        target = np.arange(len(order)) + np.repeat(place - (np.cumsum(sizes) - sizes), sizes)
        for name, column in result.items():
            column[target] = columns[name][block][order]
        place += sizes
        spool.release_memory((*columns.values(), *result.values()))
    return result, first


class BoundedStream:
    """The next ``left`` bytes of a file, as a file to read from."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self._stream, self._left = stream, left

    def read(self, count: int) -> bytes:
        """Return at most ``count`` bytes, none at the end."""
        found = self._stream.read(min(count, self._left))
        self._left -= len(found)
        return found


def read_number_lines(
    stream: IO[bytes] | BoundedStream, path: Path, line: int, compiled: bool, begun: bytes = b""
) -> Iterator[NumberLines]:
    """Yield all lines of ``begun`` and ``stream``, numbered from ``line`` on; those that begin with ``#`` become a 0.

    Raises ``InputError`` with the line that is no line of numbers, and where the last line is not complete.
    """
    take = _build_compiled_splitter() if compiled else split_numbers
    rest = begun
    while True:
        with convert_read_errors(path):
            chunk = stream.read(BLOCK)
        whole, rest = _split_complete_lines(rest + chunk, chunk, path, line)
        if whole:
            block = _blank_comments(whole)
            values, width, first, wrong = take(np.frombuffer(block, dtype=np.uint8))
            if wrong >= 0:
                place = _format_line_place(line, block[:wrong])
                raise InputError(path, "damaged: expected numbers between colons", place)
            yield NumberLines(values, width, first, line)
            line += len(first) - 1
        if not chunk:
            return


@contextmanager
def convert_read_errors(path: Path) -> Iterator[None]:
    """Turn what reading and unpacking a file may raise into ``InputError``."""
    import zlib

    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(path, f"cannot be read: {error}") from error


def open_maybe_packed(path: Path) -> IO[bytes]:
    """Return the file opened for reading, unpacked where it is packed by gzip."""
    import gzip

    with convert_read_errors(path):
        file = path.open("rb")
        if file.read(2) != b"\x1f\x8b":
            file.seek(0)
            return file
        file.close()
        return cast("IO[bytes]", gzip.open(path, "rb"))


def _format_line_place(first: int, text: bytes) -> str:
    """Return the place of what follows ``text``, which begins on the line ``first``."""
    return f"line {first + text.count(NEWLINE)}"


def _split_complete_lines(text: bytes, chunk: bytes, path: Path, line: int) -> tuple[bytes, bytes]:
    """Return the complete lines of ``text`` and what follows them."""
    end = text.rfind(b"\n") + 1
    if len(text) - end > LONGEST_LINE:
        raise InputError(path, "damaged: a line without an end", _format_line_place(line, text))
    if not chunk and end < len(text):
        raise InputError(path, "the last line is not complete: the file is cut off", _format_line_place(line, text))
    return text[:end], text[end:]


def _blank_comments(block: bytes) -> bytes:
    if not block.translate(None, _NUMERIC):
        return block
    lines = block.split(b"\n")
    return b"\n".join(b"0" if line.startswith(b"#") else line for line in lines)


def split_numbers(octets: Octets) -> tuple[IntArray, npt.NDArray[np.uint8], IntArray, int]:
    """Return values, widths and line beginnings as ``NumberLines`` holds them, and the first wrong byte (-1 none)."""
    digit = octets - np.uint8(_ZERO)
    is_digit = digit < 10
    ends = np.flatnonzero(~is_digit & (octets != _MINUS))
    signs = octets[ends]
    starts = np.r_[0, ends[:-1] + 1]
    negative = octets[starts] == _MINUS
    starts += negative
    width = ends - starts
    known = (signs == _COLON) | (signs == _NEWLINE) | (signs == _DOT)
    bad = np.flatnonzero(~known | (width < 1) | (width > MOST_DIGITS))
    inner = np.flatnonzero(octets == _MINUS)
    inner = inner[(inner > 0) & ~np.isin(octets[np.maximum(inner, 1) - 1], (_COLON, _NEWLINE))]
    wrong = min((*ends[bad[:1]].tolist(), *inner[:1].tolist()), default=-1)
    values = np.zeros(len(ends), dtype=np.int64)
    if wrong < 0 and len(ends):
        values = np.fromstring(octets.tobytes().translate(_ONE_SIGN), dtype=np.int64, sep=":")
        long = np.flatnonzero(width >= _SAFE_DIGITS)
        values[long] = _parse_digits(digit, starts[long], width[long]) * np.where(negative[long], -1, 1)
    lines = np.flatnonzero(signs == _NEWLINE) + 1
    return values, np.minimum(width, 255).astype(np.uint8), np.r_[0, lines].astype(np.int64), wrong


def _parse_digits(digit: Octets, starts: IntArray, width: IntArray) -> IntArray:
    """Return numbers modulo 2^64, one digit of all of them at a time."""
    values = np.zeros(len(starts), dtype=np.int64)
    for place in range(int(width.max(initial=0))):
        left = np.flatnonzero(width > place)
        values[left] = values[left] * 10 + digit[starts[left] + place]
    return values


def _split_bytewise(
    octets: Octets, values: IntArray, width: npt.NDArray[np.uint8], first: IntArray
) -> tuple[int, int, int]:
    """Fill the arrays byte by byte; return how many numbers and lines there are, and the first wrong byte."""
    count = lines = digits = 0
    value, negative = np.int64(0), False
    for place in range(len(octets)):
        sign = octets[place]
        if 48 <= sign <= 57:
            value = value * 10 + np.int64(sign - 48)
            digits += 1
        elif sign == 45 and not digits and not negative:
            negative = True
        elif (sign == 58 or sign == 10 or sign == 46) and 0 < digits <= 20:
            values[count] = -value if negative else value
            width[count] = digits
            count += 1
            value, negative, digits = np.int64(0), False, 0
            if sign == 10:
                lines += 1
                first[lines] = count
        else:
            return count, lines, place
    return count, lines, -1


@cache
def _build_compiled_splitter() -> Callable[[Octets], tuple[IntArray, npt.NDArray[np.uint8], IntArray, int]]:
    """Return what ``split_numbers`` does, compiled."""
    from advisor.support.compiling import jit

    split_bytewise = jit(allocating=True)(_split_bytewise)

    def split_compiled(octets: Octets) -> tuple[IntArray, npt.NDArray[np.uint8], IntArray, int]:
        ends = np.count_nonzero((octets == _COLON) | (octets == _NEWLINE) | (octets == _DOT))
        values, width = np.empty(ends, dtype=np.int64), np.empty(ends, dtype=np.uint8)
        first = np.zeros(int(np.count_nonzero(octets == _NEWLINE)) + 1, dtype=np.int64)
        _, _, wrong = split_bytewise(octets, values, width, first)
        return values, width, first, int(wrong)

    return split_compiled
