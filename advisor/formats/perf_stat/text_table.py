"""What ``perf stat`` prints for people: one table, or several in the log of a program."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor.formats.perf_stat.table import CountRow, CountTable, find_unit
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError

TITLE: Final = "Performance counter stats for "
_TITLE: Final = re.compile(rf"\s*{TITLE}(?:'(.*)'|(.*?))(?: \((\d+) runs\))?:\s*$")
_STARTED: Final = re.compile(r"# started on (.*)$")
_PLACE: Final = re.compile(r"\s*(?:CPU\d+|[SN]\d+(?:-D\d+)?(?:-C\d+)?|node\d+)(?: +\d+(?= ))?(?= )")
_ROW: Final = re.compile(
    r"\s*(?P<value>\d[\d.,'\u202f\u00a0]*|<not (?:supported|counted)>) +(?:(?P<unit>msec|ns|Joules|MiB) +)?"
    r"(?P<event>[A-Za-z][^\s#]*)(?: \((?P<late>msec)\))?\s*(?:#.*?(?<![\d.,])(?P<cpus>[\d.,]+) CPUs utilized)?.*?"
    r"(?:\( *(?P<share>\d+[.,]\d+)%\))?\s*$"
)
_CLOCK: Final = re.compile(r"\s*(?P<value>\d[\d.,]*)(?: \+- \d[\d.,]*)? seconds (?P<name>time elapsed|user|sys)\b")
_EVENTS: Final = {"time elapsed": "duration_time", "user": "user_time", "sys": "system_time"}
#: Of tables without their end the processor time tells which is the longest.
_LENGTHS: Final = ("duration_time", "task-clock", "cpu-clock", "cycles")
_SPACES: Final = re.compile(r"['\u202f\u00a0\s]")


def read_text_table(path: Path) -> CountTable:
    """Return the table of the file, of several that of the longest run; raises ``InputError`` for damage."""
    text = read_plain_text(path)
    starts = list(text.find_lines(_TITLE))
    ends = [*starts[1:], len(text.lines)]
    tables = [_read_one(text, start, end) for start, end in zip(starts, ends, strict=True)]
    if not tables:
        raise InputError(path, "no table of perf stat here")
    return replace(max(tables, key=_measure_length), others=len(tables) - 1)


def _measure_length(table: CountTable) -> tuple[float, ...]:
    """Return what tells which of several tables is of the longest run: the elapsed time, else that of processors."""
    values = {row.event: row.value or 0.0 for row in table.rows}
    return tuple(values.get(event, 0.0) for event in _LENGTHS)


def _read_one(text: PlainText, start: int, end: int) -> CountTable:
    """Return the table between two lines: it ends with the elapsed time, and what of it user and system took.

    People copy tables without their end: those stop where no row follows.
    """
    last, clock = next(text.find_matches(_CLOCK, start, end), (end, None))
    whole = clock is not None and clock["name"] == "time elapsed"
    point = "," if clock is not None and re.search(r",\d{4,}$", clock["value"]) else "."
    title = _TITLE.match(text.lines[start])
    system = title is None or title[2] is not None
    rows = []
    for line in range(start + 1, last):
        content = text.lines[line]
        place = _PLACE.match(content)
        found = _ROW.match(content[place.end() :] if place else content)
        if found is not None:
            rows.append(_make_row(text, line, found, point, system or place is not None))
        elif rows and not whole:
            break
        elif content.strip() and not content.lstrip().startswith("#"):
            raise text.make_error(line, f"is not a line of perf stat: {content.strip()[:80]!r}")
    if not rows:
        raise text.make_error(start, "no event was counted")
    for line, found in text.find_matches(_CLOCK, last, min(last + 6, end)):
        seconds = text.parse_number(_plain(found["value"], point), line)
        rows.append(CountRow(_EVENTS[found["name"]], "s", seconds, 1.0, None, None, is_system=False))
    started = text.find_match(_STARTED, max(start - 3, 0), start)
    command = (title and title[1]) or ""
    return CountTable(text.path, tuple(rows), started[1].strip() if started else None, command, is_cut=not whole)


def _make_row(text: PlainText, line: int, found: re.Match[str], point: str, system: bool) -> CountRow:
    value, share, cpus = (
        None if cell is None or cell.startswith("<") else text.parse_number(_plain(cell, point), line)
        for cell in (found["value"], found["share"], found["cpus"])
    )
    unit = find_unit(found["event"], found["unit"] or found["late"] or "", _plain(found["value"], point))
    enabled = 1.0 if share is None else share / 100
    return CountRow(found["event"], unit, value, enabled, None, cpus, system)


def _plain(cell: str, point: str) -> str:
    """Return a number without marks of thousands, and with a point before its decimals."""
    digits = _SPACES.sub("", cell)
    return digits.replace("." if point == "," else ",", "").replace(point, ".")
