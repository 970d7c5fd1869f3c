"""One file of a profile: what is measured of each function on one thread, and what user events counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: Bytes of one file, and lines of one table.
FILE_LIMIT: Final = 1 << 30
LINE_LIMIT: Final = 10_000_000
#: No count and no time in microseconds is larger.
LARGEST: Final = 1e18
#: What is measured of each function: calls, calls from it, exclusive and inclusive value.
CALLS, SUBRS, EXCL, INCL = range(4)

_FIRST: Final = re.compile(rb"(\d{1,9}) templated_functions(?:_MULTI_([^\n]{1,500}?))? *\r?\n(# Name Calls [^\n]*)\n")
_COLUMNS: Final = re.compile(rb"# Name Calls #?Subrs Excl Incl ProfileCalls(?![A-Za-z])")
_NUMBER: Final = rb"([-+.\w]{1,40})"
_FUNCTION: Final = re.compile(rb'"(.*)" ' + rb" ".join([_NUMBER] * 5) + rb'(?: GROUP="([^"]*)")? *\r?')
_EVENT: Final = re.compile(rb'"(.*)" ' + rb" ".join([_NUMBER] * 5) + rb" *\r?")
_AGGREGATES: Final = re.compile(rb"0 aggregates *\r?\n")
_EVENTS: Final = re.compile(rb"(\d{1,9}) userevents *\r?\n# eventname numevents max min mean sumsqr *\r?\n")


@dataclass(frozen=True, slots=True)
class UserEvent:
    """What a user event summed up; ``name`` as it stands in the file."""

    name: bytes
    number: float
    most: float
    least: float
    mean: float
    squares: float


@dataclass(frozen=True, slots=True)
class ProfileSheet:
    """The contents of a file.

    ``ids`` (n,) are the numbers of the functions in ``FunctionNames``, ``values`` (n, 4) what is measured of each.
    ``events`` is None where the file does not speak of user events at all. ``header`` is the line with the metadata,
    ``negative`` says whether values a little below zero were taken as zero.
    """

    metric: str
    header: bytes
    ids: IntArray
    values: FloatArray
    events: tuple[UserEvent, ...] | None
    negative: bool


@dataclass(slots=True)
class FunctionNames:
    """The names of functions over all files: ``numbers`` counts them, ``groups`` holds the groups of each."""

    numbers: dict[bytes, int] = field(default_factory=dict)
    groups: list[bytes] = field(default_factory=list)
    last: tuple[Sequence[bytes], IntArray] = field(default_factory=lambda: ((), np.zeros(0, dtype=np.int64)))

    def number_name(self, name: bytes, group: bytes) -> int:
        """Return the number of a name, a new one if it was not known."""
        found = self.numbers.setdefault(name, len(self.groups))
        if found == len(self.groups):
            self.groups.append(group)
        return found

    def number_names(self, names: Sequence[bytes], groups: Iterable[bytes]) -> IntArray:
        """Return the numbers of the names of a file, (n,); most files of a run name the same."""
        if names != self.last[0]:
            found = [self.number_name(name, group) for name, group in zip(names, groups, strict=True)]
            self.last = (names, np.array(found, dtype=np.int64))
        return self.last[1]


@dataclass(frozen=True, slots=True)
class SheetFrame:
    """Where things are in a file: the functions are ``count`` lines between ``start`` and ``end``."""

    path: Path
    content: bytes
    metric: str
    header: bytes
    count: int
    start: int
    end: int


def read_frame(path: Path) -> SheetFrame:
    """Return the parts of the file at ``path``; raises ``InputError`` where it does not look like a profile."""
    content = read_limited(path, FILE_LIMIT)
    return find_frame(path, content)


def find_frame(path: Path, content: bytes) -> SheetFrame:
    """Return the parts of ``content``, which was read from ``path``; raises ``InputError`` as ``read_frame``."""
    found = _FIRST.match(content)
    if not found or not _COLUMNS.match(found[3]):
        raise InputError(path, "does not begin as a profile of TAU", "line 1")
    count = int(found[1])
    start = found.end()
    mark = content.rfind(b"\n0 aggregates", start - 1) + 1
    if not mark:
        raise InputError(path, f"ends before the last of {count} functions")
    if count > LINE_LIMIT or count > mark - start:
        raise InputError(path, f"{count} functions do not fit into the file", "line 1")
    metric = (found[2] or b"TIME").decode("utf-8", "surrogateescape")
    return SheetFrame(path, content, metric, found[3], count, start, mark)


def parse_functions(part: SheetFrame, names: FunctionNames) -> tuple[IntArray, FloatArray]:
    """Return numbers (n,) and values (n, 4) of the functions of a file, without compiled code."""
    pieces = part.content[part.start : part.end].split(b'"')
    numbers = b"".join(pieces[2::4])
    words = numbers.split()
    # Lines are as they should be when quotes and words alternate with them; else a name holds quotes.
    if (
        len(pieces) == 4 * part.count + 1
        and len(words) == 6 * part.count
        and words[5::6].count(b"GROUP=") == part.count
        and not pieces[0]
        and {piece.strip(b" \r") for piece in set(pieces[4::4])} <= {b"\n"}
        and b"\n" not in numbers
        and b"_" not in numbers
    ):
        del words[5::6]
        try:
            values = np.array(list(map(float, words))).reshape(-1, 5)[:, :4]
        except ValueError:
            return parse_by_line(part, names)
        return names.number_names(pieces[1::4], pieces[3::4]), values
    return parse_by_line(part, names)


def parse_by_line(part: SheetFrame, names: FunctionNames) -> tuple[IntArray, FloatArray]:
    """Return what ``parse_functions`` returns, line by line; raises ``InputError`` with the line that is none."""
    lines = part.content[part.start : part.end].split(b"\n")[:-1]
    if len(lines) != part.count:
        raise InputError(part.path, f"{part.count} functions were announced, {len(lines)} are there", "line 1")
    values = np.empty((part.count, 4))
    ids = np.empty(part.count, dtype=np.int64)
    for n, line in enumerate(lines):
        ids[n], values[n] = parse_function(part, line, n, names)
    return ids, values


def parse_function(part: SheetFrame, line: bytes, n: int, names: FunctionNames) -> tuple[int, list[float]]:
    """Return number and values of the function in a line, the ``n``-th of the file."""
    found = _FUNCTION.fullmatch(line)
    numbers = _parse_numbers(found) if found else None
    if not found or numbers is None:
        raise InputError(part.path, "expected a function and five numbers", f"line {n + 3}")
    return names.number_name(found[1], found[7] or b""), numbers[:4]


def _parse_numbers(found: re.Match[bytes]) -> list[float] | None:
    """Return the numbers in a line, behind the name."""
    words = found.groups()[1:6]
    try:
        return None if any(b"_" in word for word in words) else [float(word) for word in words]
    except ValueError:
        return None


def build_sheet(part: SheetFrame, ids: IntArray, values: FloatArray) -> ProfileSheet:
    """Return the sheet of a file whose functions were read; raises ``InputError`` for what cannot be."""
    wrong = ~((values > -LARGEST) & (values < LARGEST)).all(axis=1)
    if wrong.any():
        raise InputError(part.path, "an impossible number", f"line {int(np.argmax(wrong)) + 3}")
    negative = bool((values < 0).any())
    if negative:
        # Clocks of processors differ a little, and TAU takes its own cost off.
        tolerated = max(1000.0, 1e-3 * float(values[:, INCL].max()))
        wrong = (values < -tolerated).any(axis=1) | (values[:, :EXCL] < 0).any(axis=1)
        if wrong.any():
            raise InputError(part.path, "a number below zero", f"line {int(np.argmax(wrong)) + 3}")
        values = np.maximum(values, 0.0)
    return ProfileSheet(part.metric, part.header, ids, values, _read_user_events(part), negative)


def _read_user_events(part: SheetFrame) -> tuple[UserEvent, ...] | None:
    content, line = part.content, part.count + 3
    begin = _AGGREGATES.match(content, part.end)
    if not begin:
        raise InputError(part.path, "expected '0 aggregates'", f"line {line}")
    if begin.end() == len(content):
        return None
    head = _EVENTS.match(content, begin.end())
    if not head:
        raise InputError(part.path, "expected the number of user events and a line of titles", f"line {line + 1}")
    lines = content[head.end() :].split(b"\n")
    if lines.pop().strip() or len(lines) != int(head[1]):
        text = f"{int(head[1])} user events were announced, {len(lines)} are there"
        raise InputError(part.path, text, f"line {line + 1}")
    return tuple(_parse_event(part, text, line + 3 + n) for n, text in enumerate(lines))


def _parse_event(part: SheetFrame, line: bytes, number: int) -> UserEvent:
    found = _EVENT.fullmatch(line)
    numbers = _parse_numbers(found) if found else None
    possible = numbers is not None and 0 <= numbers[0] < LARGEST and (np.isfinite(numbers).all() or not numbers[0])
    if numbers is not None and numbers[0]:
        possible = possible and abs(numbers[0] * numbers[3]) < LARGEST
    if not found or numbers is None or not possible:
        raise InputError(part.path, "expected a user event and five numbers", f"line {number}")
    return UserEvent(found[1], *numbers)
