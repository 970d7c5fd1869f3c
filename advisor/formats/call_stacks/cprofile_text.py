"""The table that ``python -m cProfile`` and ``pstats`` print: calls and own seconds of each function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

if TYPE_CHECKING:
    from pathlib import Path

_HEAD: Final = re.compile(r" *ncalls +tottime +percall +cumtime +percall +filename:lineno\(function\)")
_TOTAL: Final = re.compile(r" *(\d+) function calls (?:\((\d+) primitive calls\) )?in ([\d.]+) (?:CPU )?seconds")
#: Seconds per call are left out where there were none.
_ROW: Final = re.compile(r" *(\d+)(?:/\d+)? +([\d.]+) +(?:[\d.]+ +([\d.]+) +[\d.]+|([\d.]+)) +(\S.*)$")
_PLACE: Final = re.compile(r"(.*?):(\d{1,9})\((.*)\)$")
#: Half of the last digit of a line's seconds.
_HALF_S: Final = 5e-4


def parse(path: Path) -> StackProfile:
    """Return the functions of the last table; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    totals = list(text.find_lines(_TOTAL))
    head = text.find_line(_HEAD, totals[-1]) if totals else None
    total = _TOTAL.match(text.lines[totals[-1]]) if totals else None
    if head is None or total is None:
        raise InputError(path, "holds no table of cProfile with its sums")
    if text.lines[-1]:
        raise text.make_error(len(text.lines) - 1, "the last line has no end: the file is cut off")
    wall_s = text.parse_number(total[3], totals[-1])
    found = StackProfile("cProfile", "wall_s", {}, wall_s, sampled=False, language="python")
    counted = 0.0
    for line in range(head + 1, len(text.lines)):
        row = _ROW.match(text.lines[line])
        if row is None or (row[4] and int(row[1][:18])):
            if text.lines[line].strip():
                raise text.make_error(line, "no line of a table of cProfile")
            break
        calls, own, inclusive = (text.parse_number(number, line) for number in (row[1], row[2], row[3] or row[4]))
        if own > inclusive + 2 * _HALF_S:
            raise text.make_error(line, f"{own:g} s in the function itself, {inclusive:g} s with what it calls")
        stack = (_parse_place(row[5]),)
        counted += calls
        found.add_spent(stack, 0, own)
        found.calls[stack] = found.calls.get(stack, 0.0) + calls
    return _add_unlisted(found, counted, float(total[1][:18]))


def _add_unlisted(found: StackProfile, counted: float, total: float) -> StackProfile:
    """Return the profile with what the table does not list, as a region of its own, and a note of that."""
    together = sum(sum(each) for each in found.spent.values())
    if counted >= total and together >= found.wall_s - _HALF_S * (len(found.spent) + 1):
        return found
    found.add_spent((Frame("functions that are not listed"),), 0, max(found.wall_s - together, 0.0))
    text = f"the table lists {counted:,.0f} of {total:,.0f} calls"
    note = Note("functions left out", text, 0.1, "python -m cProfile -o FILE, and give gapwatch that file")
    return StackProfile(
        found.tool, found.unit, found.spent, found.wall_s, sampled=False, language="python", notes=(note,)
    )


def _parse_place(text: str) -> Frame:
    found = _PLACE.match(text)
    return Frame(found[3], found[1], int(found[2]) or None) if found else Frame(text, "~")
