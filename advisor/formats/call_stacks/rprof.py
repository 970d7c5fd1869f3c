"""R's samples (``Rprof.out``): one line for each, the innermost function first.

The interval is CPU time on Linux and macOS, and wall time on Windows; the file does not say which. What is written here
for lines, memory and the collector follows R's ``eval.c``.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

_HEAD: Final = re.compile(r"(?:(?:memory|GC|line) profiling: )*sample\.interval=(\d{1,9})$")
#: A function on the stack, or a line that runs; memory in use stands before them.
_PLACE: Final = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|\d{1,6}#\d{1,9}|(<GC>))\s*')
_MEMORY: Final = re.compile(r":\d+:\d+:\d+:\d+:")
_FILE: Final = re.compile(r"#File (\d{1,6}): (.*)$")
_CUT: Final = Note("file may be cut off", "the last line has no end: the last sample is incomplete", 0.1)


def parse(path: Path) -> StackProfile:
    """Return the stacks in the file; raises ``InputError`` with the line of what is none."""
    text = read_plain_text(path)
    head = _HEAD.match(text.lines[0])
    period_s = int(head[1]) * 1e-6 if head else 0.0
    if not period_s:
        raise text.make_error(0, "states no interval of samples")
    cut = (_CUT,) if text.lines[-1].strip() else ()
    found = StackProfile("Rprof", "cpu_s", {}, math.nan, program="R", language="r", notes=cut)
    for line in range(1, len(text.lines) - 1):
        content = text.lines[line].strip()
        if not content or _FILE.match(content) or _HEAD.match(content):
            continue
        memory = _MEMORY.match(content)
        stack = _parse_stack(content[memory.end() :] if memory else content)
        if stack is None:
            raise text.make_error(line, "no stack of functions")
        found.add_spent(stack or (Frame("no function"),), 0, period_s)
    if not found.spent:
        raise InputError(path, "holds no samples: the program ran for less than their interval")
    return found


def _parse_stack(content: str) -> tuple[Frame, ...] | None:
    """Return the functions, outermost first; None for what is no stack. Lines between functions are left out."""
    names, at = [], 0
    while at < len(content):
        place = _PLACE.match(content, at)
        if place is None:
            return None
        if place[1] is not None or place[2]:
            names.append(place[1] or "collector of garbage")
        at = place.end()
    return tuple(Frame(name, "R") for name in reversed(names))
