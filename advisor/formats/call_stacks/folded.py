"""Folded stacks, one line each: functions from the outermost on with ``;`` between them, and a number of samples.

Written by ``stackcollapse-*.pl``, ``py-spy record -f raw``, async-profiler, ``perf script report folded`` and others.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import HEAD, read_plain_text

if TYPE_CHECKING:
    from pathlib import Path

#: A semicolon before the number is one of a table.
_LINE: Final = re.compile(r"(\S.*?)(?<!;) +(\d{1,18})$")
#: How many lines are looked at, and how many must be there.
_GLANCE: Final = 200
_ENOUGH: Final = 3
_PLACE: Final = re.compile(r"(.*) \(([^()]+):(\d{1,9})\)$")


def match_ends(ends: bytes) -> bool:
    """Return whether the first lines are stacks: all with a number at their end, most with several functions."""
    lines = ends[:HEAD].decode("utf-8", "replace").split("\n")[:-1][:_GLANCE]
    stacks = [line for line in lines if line.strip() and not line.strip().isdigit()]
    if len(stacks) < _ENOUGH or not all(_LINE.match(line.strip("\r")) for line in stacks):
        return False
    return sum(";" in line for line in stacks) * 2 >= len(stacks)


def parse(path: Path) -> StackProfile:
    """Return the stacks in the file; raises ``InputError`` with the line of what is none."""
    text = read_plain_text(path)
    if text.lines[-1]:
        raise text.make_error(len(text.lines) - 1, "the last line has no end: the file is cut off")
    found = StackProfile("folded stacks", "samples", {}, math.nan)
    for number, line in enumerate(text.lines[:-1]):
        if not line.strip() or line.strip().isdigit():  # samples without a stack
            continue
        cells = _LINE.match(line)
        if cells is None:
            raise text.make_error(number, "no stack with a number behind it")
        found.add_spent(tuple(map(_parse_frame, cells[1].split(";"))), 0, text.parse_number(cells[2], number))
    return found


def _parse_frame(text: str) -> Frame:
    found = _PLACE.match(text)
    return Frame(found[1], found[2], int(found[3])) if found else Frame(text)
