"""The functions of a profile read by code that numba compiles, as far as lines are what most lines are.

A name is compared with the one that followed the same name in files before; another is looked up by its hash. Lines
with a name that is not known, or with numbers that plain arithmetic would not read to the last bit, are left to
``sheet.function``. Importing this module imports numba.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from advisor.formats.tau.sheet import FunctionNames, SheetFrame, parse_by_line, parse_function
from advisor.support.compiling import jit

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

Octets = npt.NDArray[np.uint8]

_QUOTE, _BLANK, _NEWLINE, _RETURN, _ZERO, _NINE, _DOT, _MINUS, _PLUS, _SMALL_E, _LARGE_E = (
    ord(sign) for sign in '" \n\r09.-+eE'
)
#: Whole numbers up to here, and powers of ten up to there, are exact; then a product or quotient is rounded once.
_EXACT: Final = 2**53
_POWERS: Final = np.array([10.0**n for n in range(23)])
_LIMIT: Final = len(_POWERS) - 1
_WORD: Final = np.frombuffer(b'GROUP="', dtype=np.uint8)

_jit = jit(allocating=True)


@dataclass(slots=True)
class FunctionParser:
    """Reads files one after the other; ``names`` are those that were found so far.

    ``text`` holds all names one after the other, ``first`` (names + 1,) where each begins; ``slots`` is a hash table
    of their numbers (-1: free), ``follows`` the number of the name that came after each.
    """

    names: FunctionNames
    text: Octets = field(default_factory=lambda: np.zeros(1 << 16, dtype=np.uint8))
    first: IntArray = field(default_factory=lambda: np.zeros(1 << 10, dtype=np.int64))
    slots: IntArray = field(default_factory=lambda: np.full(1 << 12, -1, dtype=np.int64))
    follows: IntArray = field(default_factory=lambda: np.full(1 << 10, -1, dtype=np.int64))
    count: int = 0

    def parse_functions(self, part: SheetFrame) -> tuple[IntArray, FloatArray]:
        """Return numbers (n,) and values (n, 4) of the functions of a file, as ``sheet.plain`` does."""
        data = np.frombuffer(part.content, dtype=np.uint8)
        ids = np.empty(part.count, dtype=np.int64)
        values = np.empty((part.count, 4))
        known = (self.text, self.first, self.slots, self.follows)
        lines, slow = parse_rows(data, part.start, part.end, *known, _POWERS, _WORD, ids, values)
        if lines < 0:
            return parse_by_line(part, self.names)
        for n, at in slow.tolist():
            line = part.content[at : part.content.index(b"\n", at)]
            ids[n], values[n] = parse_function(part, line, n, self.names)
        self._learn_names(ids)
        return ids, values

    def _learn_names(self, ids: IntArray) -> None:
        """Take in the names that were new, and the order of all."""
        for name in list(self.names.numbers)[self.count :] if len(self.names.groups) > self.count else ():
            self._add_name(np.frombuffer(name, dtype=np.uint8))
        self.follows[ids[:-1]] = ids[1:]
        if len(ids):
            self.follows[-1] = ids[0]

    def _add_name(self, name: Octets) -> None:
        begin = int(self.first[self.count])
        while begin + len(name) > len(self.text):
            self.text = np.concatenate([self.text, np.zeros_like(self.text)])
        if self.count + 2 >= len(self.first):
            self.first = np.concatenate([self.first, np.zeros_like(self.first)])
            self.follows = np.concatenate([self.follows[:-1], np.full(len(self.follows) + 1, -1)])
        self.text[begin : begin + len(name)] = name
        self.first[self.count + 1] = begin + len(name)
        self.count += 1
        if 2 * self.count > len(self.slots):
            self.slots = np.full(2 * len(self.slots), -1, dtype=np.int64)
            fill_slots(self.text, self.first, self.slots, 0, self.count)
        else:
            fill_slots(self.text, self.first, self.slots, self.count - 1, self.count)


@_jit
def parse_rows(
    data: Octets,
    at: int,
    end: int,
    text: Octets,
    first: IntArray,
    slots: IntArray,
    follows: IntArray,
    powers: FloatArray,
    word: Octets,
    ids: IntArray,
    values: FloatArray,
) -> tuple[int, IntArray]:
    """Fill ``ids`` and ``values`` from the lines of ``data`` between ``at`` and ``end``.

    Returns the number of lines, -1 if it is not that of ``ids``, and the lines that were left out: number and place.
    """
    slow = np.empty((len(ids), 2), dtype=np.int64)
    left, row, guess = 0, 0, follows[-1]
    while at < end:
        if row == len(ids):
            return -1, slow[:0]
        stop = -1
        if data[at] == _QUOTE and _is_name_at(data, at + 1, end, text, first, guess):
            stop = _parse_numbers(data, at + first[guess + 1] - first[guess] + 3, end, powers, word, values, row)
        name = guess
        if stop < 0:
            line = at
            while line < end and data[line] != _NEWLINE:
                line += 1
            name = _find_name(data, at + 1, _find_name_end(data, at, line), text, first, slots)
            if data[at] == _QUOTE and name >= 0:
                stop = _parse_numbers(data, at + first[name + 1] - first[name] + 3, line + 1, powers, word, values, row)
        if stop < 0:
            slow[left, 0], slow[left, 1] = row, at
            left += 1
            stop, guess = line, -1
        else:
            ids[row] = name
            guess = follows[name]
        row += 1
        at = stop + 1
    return (row if row == len(ids) else -1), slow[:left]


@_jit
def _is_name_at(data: Octets, at: int, end: int, text: Octets, first: IntArray, name: int) -> bool:
    """Return whether the name of number ``name`` stands at ``at``, with its quote and a blank behind it."""
    if name < 0:
        return False
    begin = first[name]
    length = first[name + 1] - begin
    if at + length + 1 >= end or data[at + length] != _QUOTE or data[at + length + 1] != _BLANK:
        return False
    here, there = data[at : at + length], text[begin : begin + length]
    same = True
    for n in range(length):  # without a way out of the loop, so that it is done many bytes at a time
        if here[n] != there[n]:
            same = False
    return same


@_jit
def _find_name_end(data: Octets, at: int, stop: int) -> int:
    """Return where the quote behind the name in a line stands: the third of its quotes from the end."""
    quotes = 0
    while stop > at:
        stop -= 1
        if data[stop] == _QUOTE:
            quotes += 1
            if quotes == 3:
                return stop
    return at


@_jit
def _find_name(data: Octets, at: int, stop: int, text: Octets, first: IntArray, slots: IntArray) -> int:
    """Return the number of the name between ``at`` and ``stop``, -1 if it is not known."""
    if stop <= at:
        return -1
    slot = _hash_name(data, at, stop) % len(slots)
    while slots[slot] >= 0:
        name = slots[slot]
        begin = first[name]
        if first[name + 1] - begin == stop - at:
            same = 0
            while same < stop - at and data[at + same] == text[begin + same]:
                same += 1
            if same == stop - at:
                return int(name)
        slot = (slot + 1) % len(slots)
    return -1


@_jit
def _hash_name(data: Octets, at: int, stop: int) -> int:
    """Return a number below 2**31 for some bytes."""
    found = 5381
    for n in range(at, stop):
        found = (found * 33 + data[n]) & 0x7FFFFFFF
    return found


@_jit
def fill_slots(text: Octets, first: IntArray, slots: IntArray, begin: int, end: int) -> None:
    """Enter the names from number ``begin`` to before ``end`` into the hash table."""
    for name in range(begin, end):
        slot = _hash_name(text, first[name], first[name + 1]) % len(slots)
        while slots[slot] >= 0:
            slot = (slot + 1) % len(slots)
        slots[slot] = name


@_jit
def _parse_numbers(
    data: Octets, at: int, stop: int, powers: FloatArray, word: Octets, values: FloatArray, row: int
) -> int:
    """Read four numbers, a fifth and the group; return where the line ends, -1 if not all is as it should be."""
    for n in range(5):
        mantissa, digits, exponent, point = 0, 0, 0, False
        while at < stop and (_ZERO <= data[at] <= _NINE or (data[at] == _DOT and not point)):
            if data[at] == _DOT:
                point = True
            else:
                mantissa = mantissa * 10 + (data[at] - _ZERO)
                digits += 1
                exponent -= point
            at += 1
        if digits == 0 or digits > 18 or mantissa > _EXACT:
            return -1
        if at < stop and (data[at] == _SMALL_E or data[at] == _LARGE_E):
            sign = -1 if at + 1 < stop and data[at + 1] == _MINUS else 1
            at += 2 if at + 1 < stop and (data[at + 1] == _MINUS or data[at + 1] == _PLUS) else 1
            power, begin = 0, at
            while at < stop and _ZERO <= data[at] <= _NINE and at < begin + 4:
                power = power * 10 + (data[at] - _ZERO)
                at += 1
            if at == begin:
                return -1
            exponent += sign * power
        if exponent > _LIMIT or exponent < -_LIMIT or at >= stop or data[at] != _BLANK:
            return -1
        at += 1
        if n < 4:
            values[row, n] = mantissa * powers[exponent] if exponent >= 0 else mantissa / powers[-exponent]
    return _parse_group(data, at, stop, word)


@_jit
def _parse_group(data: Octets, at: int, stop: int, word: Octets) -> int:
    """Return where the line ends that holds nothing but a group from ``at`` on, -1 if it holds anything else."""
    if at + len(word) >= stop:
        return -1
    for n in range(len(word)):
        if data[at + n] != word[n]:
            return -1
    at += len(word)
    while at < stop and data[at] != _QUOTE and data[at] != _NEWLINE:
        at += 1
    at += 1
    while at < stop and (data[at] == _BLANK or data[at] == _RETURN):
        at += 1
    return at if at < stop and data[at] == _NEWLINE else -1
