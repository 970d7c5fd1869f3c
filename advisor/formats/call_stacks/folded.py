"""Folded stacks, one line each: functions from the outermost on with ``;`` between them, and a number of samples.

Written by ``stackcollapse-*.pl``, ``py-spy record -f raw``, async-profiler, ``perf script report folded`` and others.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.format_list import STACK_LINE
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

CUT: Final = Note("file may be cut off", "the last line has no end: it and others may be incomplete", 0.1)
_PLACE: Final = re.compile(r"(.*) \(([^()]+):(\d{1,9})\)$")


def parse(path: Path) -> StackProfile:
    """Return the stacks in the file; raises ``InputError`` with the line of what is none."""
    text = read_plain_text(path)
    cut = (CUT,) if text.lines[-1].strip() else ()
    found = StackProfile("folded stacks", "samples", {}, math.nan, notes=cut)
    compared = 0
    for number, line in enumerate(text.lines):
        if not line.strip() or line.strip().isdigit():  # samples without a stack
            continue
        cells = STACK_LINE.match(line)
        if cells is None and cut and number == len(text.lines) - 1:
            break
        if cells is None:
            raise text.make_error(number, "no stack with a number behind it")
        compared += STACK_LINE.match(cells[1]) is not None
        found.add_spent(tuple(map(_parse_frame, cells[1].split(";"))), 0, text.parse_number(cells[2], number))
    if compared and compared == sum(bool(line.strip()) for line in text.lines):
        raise InputError(path, "compares two profiles (difffolded.pl): give one of the two")
    return found


def _parse_frame(text: str) -> Frame:
    found = _PLACE.match(text)
    return Frame(found[1], found[2], int(found[3])) if found else Frame(text)
