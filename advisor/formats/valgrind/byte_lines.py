"""Lines and numbers of a text, found in its bytes all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

    Bytes = npt.NDArray[np.uint8]

#: No count has more digits; sums of such numbers are exact in 64 bits.
DIGITS: Final = 15


class NotANumberError(ValueError):
    """A word that should be a number is none; ``index`` tells which of those that were asked for."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(f"word {index} is not a number")


@dataclass(frozen=True, slots=True)
class ByteLines:
    """The lines of ``text``, of which line n (0-based) is ``text[start[n]:end[n]]``, without its newline."""

    text: bytes
    code: Bytes
    start: IntArray
    end: IntArray

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, number: int) -> bytes:
        return self.text[self.start[number] : self.end[number]]

    def slice_lines(self, first: int, last: int) -> ByteLines:
        """Return lines ``first`` to before ``last``, at least one, as a text of their own."""
        begin, end = int(self.start[first]), int(self.end[last - 1]) + 1
        start = self.start[first:last] - begin
        return ByteLines(self.text[begin:end], self.code[begin:end], start, self.end[first:last] - begin)

    def bytes_at(self, place: int) -> Bytes:
        """Return the byte at ``place`` of each line; what follows where the line is shorter (0 at the end)."""
        at = self.start + place
        found: Bytes = np.where(at < len(self.code), self.code[np.minimum(at, len(self.code) - 1)], 0)
        return found


def split_lines(text: bytes) -> ByteLines:
    """Return the lines of ``text``, each of which ends in a newline."""
    code = np.frombuffer(text, dtype=np.uint8)
    end = np.flatnonzero(code == ord("\n"))
    return ByteLines(text, code, np.concatenate(([0], end[:-1] + 1)) if len(end) else end, end)


def find_words(lines: ByteLines, chosen: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return begin and end of each word on the lines ``chosen``, in order, and how many words each of these has."""
    here = np.zeros(len(lines), dtype=bool)
    here[chosen] = True
    letter = lines.code > ord(" ")
    letter &= np.repeat(here, lines.end - lines.start + 1)
    edges = np.flatnonzero(letter[1:] != letter[:-1]) + 1
    if letter[0]:
        edges = np.concatenate(([0], edges))
    begin, end = edges[::2], edges[1::2]
    first = np.searchsorted(begin, lines.start[chosen])
    return begin, end, np.diff(first, append=len(begin))


def are_digits(code: Bytes, begin: IntArray, end: IntArray) -> npt.NDArray[np.bool_]:
    """Return which words are one to nine decimal digits."""
    length = end - begin
    found: npt.NDArray[np.bool_] = (length > 0) & (length < 10)
    for place in range(9):
        inside = np.flatnonzero(found & (length > place))
        if not len(inside):
            break
        found[inside] = code[begin[inside] + place] - np.uint8(ord("0")) <= 9
    return found


def parse_integers(code: Bytes, begin: IntArray, end: IntArray) -> IntArray:
    """Return the numbers that stand at ``begin`` to ``end`` as decimal digits; raises ``NotANumberError``."""
    value: IntArray = np.zeros(len(begin), dtype=np.int64)
    length = end - begin
    odd = np.flatnonzero((length < 1) | (length > DIGITS))
    if len(odd):
        raise NotANumberError(int(odd[0]))
    for place in range(int(length.max(initial=0))):
        longer = np.flatnonzero(length > place) if place else np.arange(len(begin))
        digit = code[begin[longer] + place] - np.uint8(ord("0"))
        if len(digit) and digit.max() > 9:
            raise NotANumberError(int(longer[np.flatnonzero(digit > 9)[0]]))
        value[longer] = value[longer] * 10 + digit
    return value
