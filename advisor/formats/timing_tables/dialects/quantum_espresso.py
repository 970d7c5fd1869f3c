"""Quantum ESPRESSO: the clocks that its programs print (``clocks_handler.f90``), of the first rank.

Every program prints them in a form of its own: the clock of the run first or last, groups with or without headings,
results in between, some clocks several times. So each line that is a clock is taken where it stands, and the last
value of a clock is the one that counts: clocks only grow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_PROGRAM: Final = re.compile(
    r" +Program (\S+) +v\.\S*(?: +\([^()]{1,80}\))? +starts (?:on +(\S+) at {1,2}([ \d]\d:[ \d]\d:[ \d]\d))?"
)
_RANKS: Final = re.compile(r" +Parallel version \((?:MPI|MPI & OpenMP)\), running on +(\d{1,9}) process")
_TASKS: Final = re.compile(r" +Number of MPI processes: +(\d{1,9})$")
_THREADS: Final = re.compile(r" +Threads/MPI process: +(\d{1,9})$")
_POINTS: Final = re.compile(r" +number of k points= +(\d{1,7})\b")
_POOLS: Final = re.compile(r" +K-points division: +npool += +(\d{1,7})$")
_TIME: Final = r"((?: *\d+d *\d+h *\d+m| *\d+h *\d+m| *\d+m *[\d.]+s| *[\d.]+s))"
_ROW: Final = re.compile(
    rf" {{4,6}}(\S.{{0,60}}?) *:{_TIME} CPU(?: time,)?{_TIME} WALL(?: time| \( *(\d+|\*+) calls\))?\s*$"
)
#: What is meant as a clock.
_CLOCK: Final = re.compile(r" {4,6}\S.{0,60}?:[ \d.dhms]*\d[ms] CPU .* WALL")
_CALLED: Final = re.compile(r" {5,6}Called by (\S+?):\s*$")
_COMMON: Final = re.compile(r" {5,6}\S.* routines:?\s*$")
_PARALLEL: Final = re.compile(r" {5,6}Parallel routines")
_ON_DEVICE: Final = re.compile(r" +[\d.]+s GPU +\(")
_PARTS: Final = re.compile(r"(?:(\d+)d)? *(?:(\d+)h)? *(?:(\d+)m)? *(?:([\d.]+)s)?$")
#: Times are printed with two digits behind the point.
_SLACK: Final = 1.01
_SLACK_S: Final = 0.02


def parse(text: PlainText) -> TimingTable:
    """Return the clocks of the run; raises ``InputError`` where they are damaged or the program did not get there."""
    found = text.find_match(_PROGRAM)
    if found is None:
        raise InputError(text.path, "the program of Quantum ESPRESSO does not say who it is")
    clocks, parallel_s = _collect_clocks(text)
    names = [clock.name.casefold() for clock in clocks]
    if found[1].casefold() not in names:
        raise InputError(text.path, "the output ends before the clock of the whole run")
    whole = names.index(found[1].casefold())
    if len(clocks) == 1:
        raise InputError(text.path, "the output holds the clock of the whole run alone: nothing tells where it went")
    wall_s = clocks[whole].mean_s
    threads = _find_number(text, _THREADS) or 1
    ranks = _find_number(text, _TASKS) or _find_number(text, _RANKS) or 1  # the latter are cores where threads run
    return TimingTable(
        tool="Quantum ESPRESSO", program=f"{found[1].lower()}", wall_s=wall_s, rows=_keep_fitting(clocks, whole),
        ranks=ranks, threads=threads, language="fortran",
        started=f"{found[2]} {found[3]}" if found[2] else None, hides_waiting=True,
        first_rank=True, communication_s=parallel_s if 0 < parallel_s <= wall_s else math.nan,
        cpu_s=_find_cpu_seconds(text, found[1]),
        parameters=_find_groups(text),
    )  # fmt: skip


def _find_groups(text: PlainText) -> dict[str, float]:
    """Return how many k-points there are, and how many groups of ranks (pools) work on them at the same time."""
    points = _find_number(text, _POINTS)
    return {} if points is None else {"k-points": points, "k-point groups": _find_number(text, _POOLS) or 1}


def _find_number(text: PlainText, pattern: re.Pattern[str]) -> int | None:
    found = text.find_match(pattern)
    return int(found[1]) if found else None


def _find_cpu_seconds(text: PlainText, program: str) -> float:
    """Return the CPU time of the run, NaN where it and the wall time are printed in minutes alone."""
    seconds = math.nan
    for line, row in text.find_matches(_ROW):
        if row[1].casefold() == program.casefold():
            seconds = math.nan if "s" not in row[2] + row[3] else _parse_time(text, row[2], line)
    return seconds


def _collect_clocks(text: PlainText) -> tuple[list[TimingRow], float]:
    """Return the clocks below those that call them, and the seconds of the parallel routines.

    What calls the clocks of a group is told by its heading, else by its first clock where that was listed before.
    Routines that many others call are not listed: their seconds are in those of the callers.
    """
    clocks: list[TimingRow] = []
    numbers: dict[str, int] = {}
    parallel_s = 0.0
    for heading, group in _iterate_groups(text):
        called, parent = _CALLED.match(heading), -1
        if _COMMON.match(heading):
            parallel_s += sum(row.mean_s for row in group) if _PARALLEL.match(heading) else 0.0
            continue
        if called:
            parent = _find_caller(numbers, called[1])
            if parent < 0:
                continue
        for place, row in enumerate(group):
            known = numbers.get(row.name)
            if known is not None:
                clocks[known] = replace(clocks[known], mean_s=max(clocks[known].mean_s, row.mean_s))
                parent = known if place == 0 and not called else parent
            else:
                numbers[row.name] = len(clocks)
                clocks.append(replace(row, parent=parent))
    return clocks, parallel_s


def _iterate_groups(text: PlainText) -> Iterator[tuple[str, list[TimingRow]]]:
    """Yield the clocks that follow each other without a gap, and the line before them."""
    group: list[TimingRow] = []
    heading = ""
    for line, words in enumerate(text.lines):
        row = _ROW.match(words)
        if row is not None:
            # Fortran prints stars where a number is too large.
            calls = text.parse_number(row[4], line) if row[4] and "*" not in row[4] else float("nan")
            group.append(TimingRow(row[1], _parse_time(text, row[3], line), role=Role.USER, calls=calls))
        elif _CLOCK.match(words):
            raise text.make_error(line, "no line of the clocks")
        elif not (group and _ON_DEVICE.match(words)):
            if group:
                yield heading, group
            group, heading = [], words
    if group:
        yield heading, group


def _find_caller(numbers: dict[str, int], name: str) -> int:
    """Return the row of the caller, -1 where it is not listed; ``*egterg`` stands for the solver that was used."""
    return next((n for known, n in numbers.items() if known == name or known.endswith(name.lstrip("*"))), -1)


def _keep_fitting(clocks: list[TimingRow], whole: int) -> tuple[TimingRow, ...]:
    """Return the clocks but that of the run; of those that do not fit into their caller, none of the largest.

    A routine is listed below one caller, and other callers may have it as well: then its seconds are not its caller's.
    """
    place, left = {whole: -1}, {-1: clocks[whole].mean_s}
    smallest = sorted(range(len(clocks)), key=lambda n: clocks[n].mean_s)
    fitting = set()
    for n in smallest:
        parent = clocks[n].parent
        parent = -1 if parent == whole else parent
        room = left.setdefault(parent, clocks[parent].mean_s)
        if n != whole and clocks[n].mean_s <= _SLACK * room + _SLACK_S:
            left[parent] = room - clocks[n].mean_s
            fitting.add(n)
    rows: list[TimingRow] = []
    for n, clock in enumerate(clocks):
        parent = -1 if clock.parent == whole else clock.parent
        if n in fitting and (parent == -1 or parent in place):
            place[n] = len(rows)
            rows.append(replace(clock, parent=place.get(parent, -1)))
    return tuple(rows)


def _parse_time(text: PlainText, cell: str, line: int) -> float:
    found = _PARTS.match(cell.strip())
    if found is None:
        raise text.make_error(line, f"{cell.strip()!r} is not a time")
    days, hours, minutes, seconds = (text.parse_number(part or "0", line) for part in found.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds
