"""CrayPat: the report of ``pat_report`` and what CrayPat-lite prints, times or samples of functions over the ranks.

The first table of functions holds means over the ranks, and how much the longest rank exceeds the mean (``Imb.``). The
table of maximum function times, which most reports hold as well, names the ranks that take the most and the least.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TABLE: Final = re.compile(r" *Table \d+: *(.*)$")
_PROFILE: Final = re.compile(r"Profile by (?:Group, |Function Group and )?Function\b(?!.*\b(?:Line|Callers?|Caller)\b)")
_EXTREMES: Final = "Profile of maximum function times"
_CLOCK: Final = "Wall Clock Time"
_CELL: Final = r" *([\d,.]+%?|--) *\|"
_ROW: Final = re.compile(rf" *(\d*\|{{0,9}})((?:{_CELL}){{2,8}}) *(\S.*?) *$")
_CELLS: Final = re.compile(r"([\d,.]+%?|--) *\|")
_NUMBER: Final = re.compile(r"--|[\d,]*\.?\d+%?$")
_END: Final = re.compile(r" *\|={10,} *$")
_RANKS: Final = re.compile(r" *Number of PEs \(MPI ranks\): +([\d,]+) *$")
_THREADS: Final = re.compile(r" *Numbers of Threads per PE: +([\d,]+) *$")
_STARTED: Final = re.compile(r" *Execution start time: +(\S.*?) *$")
_INTERVAL: Final = re.compile(r" *Sampling interval: +([\d,]+) microsecs")
_PROCESS: Final = re.compile(r" *(?:Avg )?Process Time: +([\d,.]+) +secs")
_PROGRAM: Final = re.compile(r" *(?:Program invocation|Original program): *(\S*)")
_INVOCATION: Final = re.compile(r" *Program invocation:")
_RANK: Final = re.compile(r"pe\.(\d{1,9})$")
_SYNC: Final = re.compile(r"(.*)\(sync\)$")
#: What the functions of a group do, where their names do not say it.
_GROUPS: Final = {"MPI": Role.COMM_OTHER, "MPI_SYNC": Role.BARRIER, "SHMEM": Role.COMM_OTHER, "IO": Role.IO,
                  "STDIO": Role.IO, "SYSIO": Role.IO, "FFIO": Role.IO, "HDF5": Role.IO, "NETCDF": Role.IO}  # fmt: skip
_MICRO: Final = 1e-6
#: Less than this of a unit of the table is what rounding leaves of a group; and the share that rounding may change.
_NOTHING: Final = 0.2
_DIGITS: Final = 0.01


class _Line(NamedTuple):
    """A line of a table: how deep it is, its cells by the name of the column, and the label at its end."""

    number: int
    depth: int
    cells: tuple[str, ...]
    label: str


class _Section(NamedTuple):
    """A table: the names of its columns, whether it counts samples, and its lines."""

    start: int
    columns: tuple[str, ...]
    sampled: bool
    lines: tuple[_Line, ...]


def parse(text: PlainText) -> TimingTable:
    """Return the functions of the report; raises ``InputError`` where it is damaged or lists no functions."""
    titles = {line: found[1].strip() or text.lines[line + 1 : line + 2][0].strip() if line + 1 < len(text.lines) else ""
              for line, found in text.find_matches(_TABLE)}  # fmt: skip
    first = next((line for line, title in titles.items() if _PROFILE.match(title)), None)
    if first is None:
        raise InputError(text.path, "the report holds no profile by function: pat_report -O profile FOLDER")
    section = _read_section(text, first)
    if not any(line.label == "Total" for line in section.lines):
        raise text.make_error(first, "the table has no line for the total")
    total = _find_amount(text, section, next(line for line in section.lines if line.label == "Total"))
    ends = _read_process_times(text, titles)
    process = _find_number(text, _PROCESS)
    mean_s = ends[1] if ends else process
    factor = _find_factor(text, section, total, mean_s)
    rows = _build_rows(text, section, factor)
    extremes = next((line for line, title in titles.items() if title.startswith(_EXTREMES)), None)
    if extremes is not None:
        rows = _add_extremes(text, rows, _read_section(text, extremes), factor, section.sampled)
    wall_s = max(ends[2] if ends else mean_s or 0.0, total * factor)
    threads = int(_find_number(text, _THREADS) or 1)
    return TimingTable(
        tool="CrayPat",
        program=(_find_text(text, _PROGRAM) or "").rsplit("/", 1)[-1],
        wall_s=wall_s,
        shortest_s=min(ends[0], wall_s) if ends else float("nan"),
        rows=tuple(rows),
        ranks=int(_find_number(text, _RANKS) or 1),
        threads=threads if threads <= 1024 else 1,  # with accelerators it counts the threads of these
        averages_ranks=section.sampled,
        started=_find_text(text, _STARTED),
        notes=(*_describe_samples(section, factor, total, wall_s), *_check_end(text)),
    )


def _read_section(text: PlainText, start: int) -> _Section:
    """Return the table whose title is on the line ``start``; raises ``InputError`` where it does not reach its end."""
    lines: list[_Line] = []
    columns: tuple[str, ...] = ()
    sampled = False
    for number in range(start + 1, len(text.lines)):
        content = text.lines[number]
        found = _ROW.match(content)
        if found and all(_NUMBER.match(cell) for cell in _CELLS.findall(found[2])):
            marks = found[1]
            depth = int(marks.rstrip("|") or marks.count("|")) if marks else 0
            lines.append(_Line(number, depth, tuple(_CELLS.findall(found[2])), found[4]))
        elif _END.match(content) and lines:
            return _Section(start, columns, sampled, tuple(lines))
        elif _TABLE.match(content):
            break
        elif not lines and "|" in content and not columns:
            columns = tuple(cell.strip() for cell in content.split("|"))
            sampled = any(cell.startswith("Samp") for cell in columns)
    raise text.make_error(start, "the table ends before its closing line")


def _find_amount(text: PlainText, section: _Section, line: _Line) -> float:
    """Return the time or the samples of a line: the second column, behind the share."""
    if len(line.cells) < 2:
        raise text.make_error(line.number, "no line of this table")
    return _parse_cell(text, line.cells[1], line.number)


def _parse_cell(text: PlainText, cell: str, line: int) -> float:
    return text.parse_number(cell.replace(",", "").rstrip("%"), line)


def _find_factor(text: PlainText, section: _Section, total: float, mean_s: float | None) -> float:
    """Return the seconds of a unit of the table: 1, or the interval between samples."""
    if not section.sampled:
        return 1.0
    interval = _find_number(text, _INTERVAL)
    if interval:
        return interval * _MICRO
    if not mean_s or not total > 0:
        raise text.make_error(section.start, "the report states neither the sampling interval nor the process time")
    return mean_s / total


def _build_rows(text: PlainText, section: _Section, factor: float) -> list[TimingRow]:
    """Return the functions, and of each group what CrayPat does not list: the groups themselves do nothing."""
    rows: list[TimingRow] = []
    groups: dict[str, tuple[float, int]] = {}
    group = ""
    deepest = max((line.depth for line in section.lines), default=0)
    for line in section.lines:
        if line.label == "Total" or line.depth > 2:
            continue
        mean = _find_amount(text, section, line) * factor
        if line.depth == 1 and deepest > 1:
            group = line.label
            groups[group] = (mean, len(rows))
            continue
        excess = line.cells[2] if len(line.cells) > 2 else "--"
        most = mean + _parse_cell(text, excess, line.number) * factor if excess != "--" else float("nan")
        calls = line.cells[4] if len(line.cells) > 4 else "--"
        rows.append(
            TimingRow(
                line.label, mean, most_s=most, role=_classify_function(line.label, group),
                calls=_parse_cell(text, calls, line.number) if calls != "--" else float("nan"),
                only_waits=_SYNC.match(line.label) is not None,
            )
        )  # fmt: skip
        if group in groups:
            groups[group] = (groups[group][0] - mean, groups[group][1])
    return rows + [
        TimingRow(f"{name}: other functions", left, role=_GROUPS.get(name, Role.USER), only_waits=name == "MPI_SYNC")
        for name, (left, _) in groups.items()
        if left > _NOTHING * factor
    ]


def _classify_function(name: str, group: str) -> Role:
    """Return what a function does: ``f(sync)`` waits until all ranks have come to the collective ``f``."""
    if _SYNC.match(name):
        return Role.BARRIER
    role = classify_region(name)[1]
    return role if group in ("MPI", "MPI_SYNC") and role != Role.USER else _GROUPS.get(group, Role.USER)


def _add_extremes(
    text: PlainText, rows: list[TimingRow], section: _Section, factor: float, sampled: bool
) -> list[TimingRow]:
    """Return ``rows`` with the least and the most of the functions and the ranks that take them."""
    if section.sampled != sampled:
        return rows
    found: dict[str, list[tuple[float, int]]] = {}
    name = ""
    for line in section.lines:
        rank = _RANK.match(line.label)
        if rank is None:
            name = line.label
        else:
            found.setdefault(name, []).append((_find_amount(text, section, line) * factor, int(rank[1])))
    result = []
    for row in rows:
        ends = sorted(found.get(row.name, ()))
        if len(ends) < 2 or not ends[0][0] <= row.mean_s * (1 + _DIGITS) <= ends[-1][0] * (1 + 2 * _DIGITS):
            result.append(row)
            continue
        (least, least_at), (most, most_at) = ends[0], ends[-1]
        result.append(replace(row, least_s=least, most_s=most, least_at=least_at, most_at=most_at))
    return result


def _read_process_times(text: PlainText, titles: dict[int, str]) -> tuple[float, float, float] | None:
    """Return least, mean and most of the process time over the ranks, None where the report has no table of them."""
    start = next((line for line, title in titles.items() if title.startswith(_CLOCK)), None)
    if start is None:
        return None
    section = _read_section(text, start)
    times = [(line.label, _parse_cell(text, line.cells[0], line.number)) for line in section.lines if line.cells]
    mean = next((seconds for label, seconds in times if label == "Total"), None)
    ranks = [seconds for label, seconds in times if _RANK.match(label)]
    if mean is None:
        return None
    return (min(ranks), mean, max(ranks)) if ranks else (mean, mean, mean)


def _find_number(text: PlainText, pattern: re.Pattern[str]) -> float | None:
    return next((_parse_cell(text, found[1], line) for line, found in text.find_matches(pattern)), None)


def _find_text(text: PlainText, pattern: re.Pattern[str]) -> str | None:
    for line, found in text.find_matches(pattern):
        named = found[1]
        return named or (text.lines[line + 1].split() or [""])[0] if line + 1 < len(text.lines) else named or None
    return None


def _describe_samples(section: _Section, factor: float, total: float, wall_s: float) -> Iterator[Note]:
    if section.sampled and total * factor < 0.5 * wall_s:
        text = f"samples cover {total * factor:.3g} s of {wall_s:.3g} s: the rest is in no function"
        yield Note("few samples", text, 0.2)


def _check_end(text: PlainText) -> Iterator[Note]:
    """Yield a note where the report does not get to the lines behind its tables."""
    if text.find_line(_INVOCATION) is None:
        what = "the report does not state the command of the program, which follows its tables: it is not whole"
        yield Note("report cut off", what, 0.1, "pat_report FOLDER > report.txt")
