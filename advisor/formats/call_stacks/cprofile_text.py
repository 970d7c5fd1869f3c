"""The table that ``python -m cProfile`` and ``pstats`` print: calls and own seconds of each function."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor.formats.call_stacks.known_code import is_compiling
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note

_HEAD: Final = re.compile(r" *ncalls +tottime +percall +cumtime +percall +filename:lineno\(function\)")
_TOTAL: Final = re.compile(r" *(\d+) function calls (?:\((\d+) primitive calls\) )?in ([\d.]+) (?:CPU )?seconds")
#: Seconds per call are left out where there were none, or all were made by others of the same function.
_ROW: Final = re.compile(
    r" *(?P<calls>\d+)(?P<first>/\d+)? +(?P<own>[\d.]+) +"
    r"(?:[\d.]+ +(?P<all>[\d.]+) +[\d.]+|[\d.]+ +(?P<inner>[\d.]+)|(?P<none>[\d.]+)) +(?P<place>\S.*)$"
)
_PLACE: Final = re.compile(r"(.*?):(\d{1,9})\((.*)\)$")
#: Half of the last digit of a line's seconds.
_HALF_S: Final = 5e-4


def parse(path: Path) -> StackProfile:
    """Return the functions of the last table; raises ``InputError`` with the line of what is damaged."""
    text = read_plain_text(path)
    totals = list(text.find_lines(_TOTAL))
    total = _TOTAL.match(text.lines[totals[-1]]) if totals else None
    head = text.find_line(_HEAD, totals[-1] if totals else 0)
    if head is None:
        raise InputError(path, "holds no table of cProfile")
    if text.lines[-1] and not text.lines[-1].rstrip().endswith((")", "}")):  # {built-in method …}
        raise text.make_error(len(text.lines) - 1, "the last line has no end: the file is cut off")
    wall_s = text.parse_number(total[3], totals[-1]) if total is not None else _find_longest(text, head)
    found = StackProfile("cProfile", "wall_s", {}, wall_s, sampled=False, language="python")
    counted = compiled_s = 0.0
    for line in range(head + 1, len(text.lines)):
        row = _match_row(text.lines[line])
        if row is None:
            if text.lines[line].strip():
                raise text.make_error(line, "no line of a table of cProfile")
            break
        inclusive = text.parse_number(row["all"] or row["inner"] or row["none"], line)
        calls, own = (text.parse_number(row[column], line) for column in ("calls", "own"))
        if own > inclusive + 2 * _HALF_S and not row["first"]:  # of calls at the same time, the inclusive holds one
            raise text.make_error(line, f"{own:g} s in the function itself, {inclusive:g} s with what it calls")
        stack = (_parse_place(row["place"]),)
        counted += calls
        found.add_spent(stack, 0, own)
        found.calls[stack] = found.calls.get(stack, 0.0) + calls
        compiled_s = max(compiled_s, inclusive if is_compiling(stack[0]) else 0.0)
    found = replace(found, compiled_s=compiled_s)
    if not found.spent:
        raise text.make_error(head, "the table has no rows")
    return _add_unlisted(found, counted, float(total[1][:18]) if total is not None else None)


def _find_longest(text: PlainText, head: int) -> float:
    """Return the seconds of the function with most, callees and all: the run, where its sums were left out."""
    rows = ((line, _match_row(text.lines[line])) for line in range(head + 1, len(text.lines)))
    return max(
        (text.parse_number(row["all"], line) for line, row in rows if row is not None and row["all"]), default=0.0
    )


def _match_row(line: str) -> re.Match[str] | None:
    """Return the cells of a row; None where seconds per call are missing though there were calls."""
    row = _ROW.match(line)
    if row is None or (row["inner"] and row["first"] != "/0") or (row["none"] and int(row["calls"][:18])):
        return None
    return row


def _add_unlisted(found: StackProfile, counted: float, total: float | None) -> StackProfile:
    """Return the profile with what the table does not list, as a region of its own, and a note of that.

    ``total`` is how many calls there were, None where the sums above the table are missing.
    """
    together = sum(sum(each) for each in found.spent.values())
    if total is not None and counted >= total and together >= found.wall_s - _HALF_S * (len(found.spent) + 1):
        return found
    found.add_spent((Frame("functions that are not listed"),), 0, max(found.wall_s - together, 0.0))
    text = (
        "the sums above the table are missing: its longest function stands for the run, and what it lacks is not known"
        if total is None
        else f"the table lists {counted:,.0f} of {total:,.0f} calls"
    )
    note = Note("functions left out", text, 0.1, "python -m cProfile -o FILE, and give gapwatch that file")
    return replace(found, wall_s=max(found.wall_s, together), notes=(note,))


def _parse_place(text: str) -> Frame:
    found = _PLACE.match(text)
    return Frame(found[3], found[1], int(found[2]) or None) if found else Frame(text, "~")
