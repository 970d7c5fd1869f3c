"""What ``perf annotate --stdio`` prints: how many samples each function has, above its instructions."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

_HEAD: Final = re.compile(
    r" *Percent *\|\s*Source code & Disassembly of (?P<file>\S+) for (?P<event>\S+)"
    r"(?: \((?P<samples>\d{1,15}) samples\b)?"
)
#: Where a function begins: its address and name, behind a number of a line or not.
_BEGIN: Final = re.compile(r"\s*:? ?(?:\d+ +)?[0-9a-f]{8,16} <(.*)>:\s*$")
_MODULE: Final = Note(
    "instructions of functions",
    "the listing tells how many samples each function has: threads, time and calls are not in it",
    0.1,
    "perf script --header > perf.txt",
)


def parse(path: Path) -> StackProfile:
    """Return the functions with their samples, of the event with most; raises ``InputError`` where none are stated."""
    text = read_plain_text(path)
    heads = [(line, found) for line, found in text.find_matches(_HEAD) if found["samples"]]
    if not heads:
        raise InputError(path, "does not state how many samples there are; perf report --stdio does")
    counts: dict[str, float] = {}
    for line, found in heads:
        counts[found["event"]] = counts.get(found["event"], 0.0) + text.parse_number(found["samples"], line)
    event = max(counts, key=lambda name: counts[name])
    files = {found["file"] for _, found in heads}
    program = files.pop() if len(files) == 1 else ""
    profile = StackProfile("perf annotate", "samples", {}, math.nan, program=program, notes=(_MODULE,))
    ends = [line for line, _ in heads[1:]] + [len(text.lines)]
    for (line, found), end in zip(heads, ends, strict=True):
        name = text.find_match(_BEGIN, line, end)
        if found["event"] == event:
            stack = (Frame(name[1] if name else f"[{found['file']}]"),)
            profile.add_spent(stack, 0, text.parse_number(found["samples"], line))
    return profile
