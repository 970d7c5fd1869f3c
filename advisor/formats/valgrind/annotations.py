"""What ``callgrind_annotate`` and ``cg_annotate`` print: counts of functions, without those below a threshold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.formats.valgrind.dump import CodePlace, HotLines, ValgrindDump
from advisor.formats.valgrind.functions import OTHERS, UNKNOWN
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVENTS: Final = re.compile(r"Events shown: +(\S.*?) *$")
_COMMAND: Final = re.compile(r"(?:Command|Profiled target): +(\S.*?)(?: \(PID (\d{1,9}), part (\d{1,9})\))? *$")
_CACHE: Final = re.compile(r"((?:I1|D1|LL) cache): +(\S.*?) *$")
_DATA: Final = re.compile(r"(?:Profile data file '([^']+)'|Data file: +(\S.*?) *$)")
_TOTALS: Final = re.compile(r"(.*\S) +PROGRAM TOTALS$")
_HEAD: Final = re.compile(r".*\S +file:function$")
_CELL: Final = re.compile(r" *([\d,]{1,30}|\.)(?: \( *[\d.]+%\))?(?= |$)")
_FUNCTION: Final = re.compile(r"(.*?):((?:[^:]|::)+?)(?: \[([^\]]+)\])?$")
#: What the functions may exceed the totals by: callgrind counts an event in each of its parts.
_SLACK: Final = 1.001


def read_annotation(path: Path) -> ValgrindDump:
    """Return the table of functions in the file at ``path``; raises ``InputError`` with the line of what is damaged.

    What the functions below the threshold executed is that of other functions: the totals are printed.
    """
    text = read_plain_text(path)
    shown, total, head = (text.find_line(pattern) for pattern in (_EVENTS, _TOTALS, _HEAD))
    found = text.find_match(_EVENTS)
    if found is None or shown is None or total is None or head is None:
        raise InputError(path, "the table of functions is missing: the file is cut off")
    events = tuple(found[1].split())
    totals, _ = _parse_counts(text, total, len(events))
    rows = list(_parse_rows(text, head + 2, len(events)))
    if not rows:
        raise text.make_error(head, "no function follows: the file is cut off")
    table = np.array([row for _, row in rows])
    if bool((table.sum(axis=0) > _SLACK * totals + 1).any()):
        data = next((match for _, match in text.find_matches(_DATA)), None)
        name = (data[1] or data[2]) if data else "callgrind.out.PID"
        what = f"of what functions call, too: callgrind_annotate --inclusive=no {name} > callgrind.txt"
        raise text.make_error(head, f"the functions count more than the program: their counts are {what}")
    places = [*(place for place, _ in rows), CodePlace(UNKNOWN, UNKNOWN, OTHERS, UNKNOWN)]
    counts = np.vstack([table, np.maximum(totals - table.sum(axis=0), 0.0)])
    command = text.find_match(_COMMAND)
    none = np.zeros(0, dtype=np.int64)
    return ValgrindDump(
        path=path, command=command[1] if command else "", pid=int(command[2]) if command and command[2] else None,
        thread=None, part=int(command[3]) if command and command[3] else 0,
        caches=tuple(f"{match[1]}: {match[2]}" for _, match in text.find_matches(_CACHE)), events=events,
        places=tuple(places), counts=counts, calls=None, line=np.zeros(len(places), dtype=np.int64),
        lines=HotLines((), none, none, np.zeros((0, len(events)))), totals_deviation=0.0,
    )  # fmt: skip


def _parse_rows(text: PlainText, line: int, columns: int) -> Iterator[tuple[CodePlace, np.ndarray]]:
    """Yield functions and their counts to the end of the table."""
    while line < len(text.lines) and text.lines[line].strip():
        counts, rest = _parse_counts(text, line, columns)
        found = _FUNCTION.match(rest.removeprefix("* ").removeprefix("> "))
        if found is None:
            raise text.make_error(line, f"{rest[:80]!r} is no file and function")
        file = found[1].strip() or UNKNOWN
        yield CodePlace(found[3] or UNKNOWN, file, found[2].strip(), file), counts
        line += 1
    if line == len(text.lines):
        raise text.make_error(line - 1, "the table of functions has no end: the file is cut off")


def _parse_counts(text: PlainText, line: int, columns: int) -> tuple[np.ndarray, str]:
    """Return the counts at the beginning of a line, and what follows them."""
    row, place = text.lines[line], 0
    counts: list[float] = []
    for _ in range(columns):
        found = _CELL.match(row, place)
        if found is None:
            raise text.make_error(line, f"{len(counts)} counts of {columns} events")
        counts.append(0.0 if found[1] == "." else text.parse_number(found[1].replace(",", ""), line))
        place = found.end()
    return np.array(counts), row[place:].strip()
