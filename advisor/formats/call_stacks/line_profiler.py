"""The tables of line_profiler (``kernprof -l -v``, ``python -m line_profiler``): seconds of each line of functions.

A line holds all that it calls. Where it calls another function of the tables, which took no longer than the line, only
the rest is the line's own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.known_code import INTERPRETED
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

_UNIT: Final = re.compile(r"\s*Timer unit: (\d+(?:\.\d+)?(?:[eE][-+]?\d+)?) s\s*$")
_TOTAL: Final = re.compile(r"\s*Total time: (\d+(?:\.\d+)?(?:[eE][-+]?\d+)?) s\s*$")
_FILE: Final = re.compile(r"\s*File: (\S.*?)\s*$")
_FUNCTION: Final = re.compile(r"\s*Function: (\S.*?) at line (\d{1,9})\s*$")
_HEAD: Final = re.compile(r"\s*Line #\s+Hits\s+Time\s+Per Hit\s+% Time\s+Line Contents\s*$")
_RULE: Final = re.compile(r"\s*=+\s*$")
_NUMBER: Final = r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_ROW: Final = re.compile(rf"\s*(\d{{1,9}}) +(\d{{1,15}}) +({_NUMBER}) +({_NUMBER}) +({_NUMBER})(?:  (.*))?$")
#: What may be called, but not what is defined.
_CALL: Final = re.compile(r"(?<!def )\b(\w+)\(")
_BARE: Final = re.compile(r"\s*(\d{1,9})(?:\s.*)?$")
#: A line that takes less each time does one thing or a few: what it takes is the interpreter's.
_BRIEF_S: Final = 5e-6
#: Many such lines make a loop.
_OFTEN: Final = 1000
#: Digits of times, shares of the total, and how far the lines may miss the total of their function.
SHARE: Final = 0.01
_SLACK_S: Final = 1e-5
_PARTIAL: Final = Note(
    "profiled functions alone",
    "line_profiler times the functions that it was told to, and lengthens each line by some tenths of a microsecond:"
    " the run is these functions, and short lines take less than they seem to",
    0.1,
    "python -m cProfile -o FILE PROGRAM.py",
)


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line of a function: how often it ran, its seconds with what it calls, how far these may be off, its text."""

    line: int
    hits: float
    seconds: float
    error_s: float
    text: str


@dataclass(frozen=True, slots=True)
class TimedFunction:
    """A table: the function, its file, its seconds, and its lines that ran."""

    name: str
    file: str
    total_s: float
    lines: tuple[TimedLine, ...]

    @property
    def last_name(self) -> str:
        """The name by which lines call the function."""
        return self.name.rsplit(".", 1)[-1]


def parse(path: Path) -> StackProfile:
    """Return the lines of all functions; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    functions = list(_parse_functions(text))
    if not functions:
        raise InputError(path, "holds no table of line_profiler")
    callers: dict[str, dict[tuple[int, int], None]] = defaultdict(dict)
    for number, one in enumerate(functions):
        for row in one.lines:
            for name in _CALL.findall(row.text):
                callers[name][number, row.line] = None
    return build_line_profile(functions, callers)


def build_line_profile(
    functions: list[TimedFunction], callers: Mapping[str, dict[tuple[int, int], None]], notes: tuple[Note, ...] = ()
) -> StackProfile:
    """Return the lines of all functions; ``callers`` has the lines (function, line) that call one, by its last name."""
    rest, inside = _nest_functions(functions, callers)
    whole_s = sum(one.total_s for number, one in enumerate(functions) if number not in inside)
    found = StackProfile(
        "line_profiler", "wall_s", {}, whole_s, sampled=False, language="python", notes=(_PARTIAL, *notes)
    )
    for number, one in enumerate(functions):
        for row in one.lines:
            own_s = rest[number, row.line]
            frame = Frame(one.name, one.file, row.line)
            found.add_spent((frame,), 0, own_s)
            found.calls[frame,] = found.calls.get((frame,), 0.0) + row.hits
            if row.hits >= _OFTEN and own_s <= _BRIEF_S * row.hits:
                found.kinds[frame.name, frame.file, frame.line] = INTERPRETED
    return found


def _nest_functions(
    functions: list[TimedFunction], callers: Mapping[str, dict[tuple[int, int], None]]
) -> tuple[dict[tuple[int, int], float], set[int]]:
    """Return the own seconds of each line (function, line), and the functions that lines of others call.

    Functions of one name are called by all lines of ``callers``, if these took as long: of each the same part.
    """
    rest = {(number, row.line): row.seconds for number, one in enumerate(functions) for row in one.lines}
    named: dict[str, set[int]] = defaultdict(set)
    for number, one in enumerate(functions):
        named[one.last_name].add(number)
    inside: set[int] = set()
    for name, callees in named.items():
        lines = [line for line in callers.get(name, ()) if line[0] not in callees]
        room_s, called_s = sum(rest[line] for line in lines), sum(functions[one].total_s for one in callees)
        if lines and room_s >= called_s * (1 - SHARE):
            inside |= callees
            for line in lines:
                rest[line] *= max(1 - called_s / room_s, 0.0) if room_s else 0.0
    return rest, inside


def _parse_functions(text: PlainText) -> Iterator[TimedFunction]:
    """Yield the tables that have lines."""
    unit_s = file = None
    line = 0
    total_s = 0.0
    while line < len(text.lines):
        row = text.lines[line]
        if found := _UNIT.match(row):
            unit_s = text.parse_number(found[1], line)
        elif found := _TOTAL.match(row):
            total_s = text.parse_number(found[1], line)
        elif found := _FILE.match(row):
            file = found[1]
        elif found := _FUNCTION.match(row):
            if unit_s is None or file is None:
                raise text.make_error(line, "the unit of the times, or the file of the function, is missing")
            if not 0 < unit_s <= 1:
                raise text.make_error(line, f"{unit_s:g} s is not a unit of time")
            lines, line = _parse_lines(text, line + 1, unit_s)
            _check_total(text, line, lines, total_s, found[1])
            if total_s > 0:
                yield TimedFunction(found[1], file, total_s, tuple(lines))
            continue
        line += 1


def _parse_lines(text: PlainText, line: int, unit_s: float) -> tuple[list[TimedLine], int]:
    """Return the lines of a table that ran, and where the table ends."""
    while line < len(text.lines) and not _HEAD.match(text.lines[line]):
        if text.lines[line].strip():
            raise text.make_error(line, "a table of lines is expected")
        line += 1
    if line + 1 >= len(text.lines) or not _RULE.match(text.lines[line + 1]):
        raise text.make_error(min(line, len(text.lines) - 1), "the table of lines has no head: the file is cut off")
    found: list[TimedLine] = []
    line += 2
    last = 0
    while line < len(text.lines) and not (_TOTAL.match(text.lines[line]) or _UNIT.match(text.lines[line])):
        cells, bare = _ROW.match(text.lines[line]), _BARE.match(text.lines[line])
        number = int(bare[1]) if bare else last
        if number < last:
            raise text.make_error(line, "the lines of a function are not in order")
        last = number
        if cells is not None:
            found.append(TimedLine(number, *_parse_times(text, line, cells, unit_s), cells[6] or ""))
        line += 1
    return found, line


def _parse_times(text: PlainText, line: int, cells: re.Match[str], unit_s: float) -> tuple[float, float, float]:
    """Return how often a line ran, its seconds, and their error: as printed, or by those of each time if more exact."""
    hits, time, each = (text.parse_number(cells[n], line) for n in (2, 3, 4))
    time_error, each_error = _last_digit(cells[3]), hits * _last_digit(cells[4])
    if abs(hits * each - time) > time_error + each_error:
        raise text.make_error(line, f"{hits:g} times {each:g} are not {time:g}")
    seconds = (hits * each if each_error < time_error else time) * unit_s
    return hits, seconds, min(each_error, time_error) * unit_s


def _last_digit(number: str) -> float:
    """Return what the last digit of a number stands for: it may be rounded or cut off."""
    digits, _, exponent = number.lower().partition("e")
    return 10.0 ** (min(int(exponent or 0), 18) - len(digits.partition(".")[2]))


def _check_total(text: PlainText, end: int, lines: list[TimedLine], total_s: float, name: str) -> None:
    """Raise ``InputError`` where the lines of a function do not add up to its total."""
    together = sum(one.seconds for one in lines)
    if abs(together - total_s) > SHARE * total_s + _SLACK_S + sum(one.error_s for one in lines):
        raise text.make_error(end - 1, f"the lines of {name} add up to {together:g} s, not to {total_s:g} s")
