"""Quantum ESPRESSO: the clocks that its programs print at their end (``clocks_handler.f90``), of the first rank."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.model.units import format_share
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_PROGRAM: Final = re.compile(r" +Program (\S+) v\.\S+ +starts on +(\S+) at +(.{8})")
_RANKS: Final = re.compile(r" +Parallel version \((?:MPI|MPI & OpenMP)\), running on +(\d{1,9}) process")
_TASKS: Final = re.compile(r" +Number of MPI processes: +(\d{1,9})$")
_THREADS: Final = re.compile(r" +Threads/MPI process: +(\d{1,9})$")
_TIME: Final = r"((?: *\d+h *\d+m| *\d+m *[\d.]+s| *[\d.]+s))"
_ROW: Final = re.compile(rf" {{5}}(\S+) *:{_TIME} CPU{_TIME} WALL(?: \( *(\d+) calls\))?$")
_CALLED: Final = re.compile(r" {5}Called by (\S+?):$")
_HEADING: Final = re.compile(r" {5}(?:General routines|Parallel routines|EXX routines|.* routines:?)$")
_PARALLEL: Final = re.compile(r" {5}Parallel routines")
_PARTS: Final = re.compile(r"(?:(\d+)h)? *(?:(\d+)m)? *(?:([\d.]+)s)?$")


def parse(text: PlainText) -> TimingTable:
    """Return the clocks of the run; raises ``InputError`` where they are damaged or the program did not get there."""
    opening = text.find_line(_PROGRAM)
    found = None if opening is None else _PROGRAM.match(text.lines[opening])
    if found is None:
        raise InputError(text.path, "the program of Quantum ESPRESSO does not say who it is")
    wall_s, end, total = None, None, found[1]
    for line in text.find_lines(_ROW):
        row = _ROW.match(text.lines[line])
        if row is not None and row[1] == total:
            wall_s, end = _parse_time(text, row[3], line), line
    if wall_s is None or end is None:
        raise InputError(text.path, "the output ends before the clock of the whole run")
    rows, parallel_s = _parse_rows(text, end)
    ranks = _find_number(text, _TASKS) or _find_number(text, _RANKS) or 1  # the latter are cores where threads run
    notes = []
    if ranks > 1:
        share = f"; its parallel routines take {format_share(parallel_s / wall_s)} of the run" if parallel_s else ""
        notes.append(Note("one rank of many", f"the clocks are those of the first rank alone{share}"))
    return TimingTable(
        tool="Quantum ESPRESSO", program=f"{total.lower()}", wall_s=wall_s, rows=rows, ranks=ranks,
        threads=_find_number(text, _THREADS) or 1, language="fortran", started=f"{found[2]} {found[3]}",
        notes=tuple(notes), hides_waiting=True,
    )  # fmt: skip


def _find_number(text: PlainText, pattern: re.Pattern[str]) -> int | None:
    line = text.find_line(pattern)
    found = None if line is None else pattern.match(text.lines[line])
    return int(found[1]) if found else None


def _parse_rows(text: PlainText, end: int) -> tuple[tuple[TimingRow, ...], float]:
    """Return the clocks before ``end`` below those that call them, and the seconds of the parallel routines."""
    first = text.find_line(_ROW)
    rows: list[TimingRow] = []
    numbers: dict[str, int] = {}
    parent, listed, parallel_s = -1, True, 0.0
    for line in range(first if first is not None else end, end):
        called, row = _CALLED.match(text.lines[line]), _ROW.match(text.lines[line])
        if called:
            parent, listed = _find_caller(numbers, called[1])
        elif _HEADING.match(text.lines[line]):
            listed = False
        elif row and not listed:
            parallel_s += _parse_time(text, row[3], line) if _is_below_parallel(text, line) else 0.0
        elif row:
            seconds = _parse_time(text, row[3], line)
            calls = text.parse_number(row[4], line) if row[4] else float("nan")
            numbers[row[1]] = len(rows)
            rows.append(TimingRow(row[1], seconds, parent=parent, role=Role.USER, calls=calls))
        elif text.lines[line].strip():
            raise text.make_error(line, "no line of the clocks")
    return tuple(rows), parallel_s


def _find_caller(numbers: dict[str, int], name: str) -> tuple[int, bool]:
    """Return the row of the caller and whether it is listed; ``*egterg`` stands for the solver that was used."""
    found = next((n for known, n in numbers.items() if known == name or known.endswith(name.lstrip("*"))), None)
    return (found, True) if found is not None else (-1, False)


def _is_below_parallel(text: PlainText, line: int) -> bool:
    return any(_PARALLEL.match(text.lines[n]) for n in range(max(line - 10, 0), line))


def _parse_time(text: PlainText, cell: str, line: int) -> float:
    found = _PARTS.match(cell.strip())
    if found is None:
        raise text.make_error(line, f"{cell.strip()!r} is no time")
    hours, minutes, seconds = (text.parse_number(part or "0", line) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds
