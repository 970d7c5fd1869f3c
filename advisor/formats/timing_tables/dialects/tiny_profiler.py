"""AMReX: the tables of TinyProfiler (``AMReX_TinyProfiler.cpp``), exclusive and inclusive seconds by function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TOTAL: Final = re.compile(
    r"TinyProfiler total time across processes \[min\.\.\.avg\.\.\.max\]: (\S+) \.\.\. (\S+) \.\.\. (\S+)$"
)
_HEAD: Final = re.compile(r"Name +NCalls +(Excl|Incl)\. Min +\1\. Avg +\1\. Max +Max +%$")
_RULE: Final = re.compile(r"-{20,}$")
_ROW: Final = re.compile(r"(.*?\S) +(\S+) +(\S+) +(\S+) +(\S+) +(\S+)%$")
_RANKS: Final = re.compile(r"MPI initialized with (\d{1,9}) MPI processes")
_THREADS: Final = re.compile(r"OMP initialized with (\d{1,9}) OMP threads")
_OTHER: Final = "Other"


def parse(text: PlainText) -> TimingTable:
    """Return the last profile in the file; raises ``InputError`` where it is damaged."""
    titles = list(text.find_lines(_TOTAL))
    if not titles:
        raise InputError(text.path, "holds no table of TinyProfiler")
    found = _TOTAL.match(text.lines[titles[-1]])
    assert found is not None
    least_s, mean_s, most_s = (text.parse_number(found[n], titles[-1]) for n in (1, 2, 3))
    own, end = _parse_table(text, titles[-1], "Excl")
    inclusive, _ = _parse_table(text, end, "Incl")
    if {row.name for row in own} != {row.name for row in inclusive}:
        raise text.make_error(end, "the functions of the two tables differ: lines are missing")
    ranks, threads = (_find_number(text, pattern, titles[-1]) for pattern in (_RANKS, _THREADS))
    notes: tuple[Note, ...] = ()
    if any(row.name == _OTHER for row in own):
        notes = (Note("functions put together", "functions of little time are in the row 'Other', whose extremes are "
                      "no one rank's", 0.0, "tiny_profiler.print_threshold=0"),)  # fmt: skip
    rows = tuple(row if row.name != _OTHER else TimingRow(row.name, row.mean_s, calls=row.calls) for row in own)
    return TimingTable(
        tool="TinyProfiler", program="", wall_s=max(mean_s, most_s), rows=rows, ranks=ranks,
        shortest_s=min(least_s, mean_s), threads=threads or 1,
        hides_waiting=True, language="cxx", notes=notes,
    )  # fmt: skip


def _find_number(text: PlainText, pattern: re.Pattern[str], stop: int) -> int | None:
    found = text.find_match(pattern, 0, stop)
    return int(found[1]) if found else None


def _parse_table(text: PlainText, start: int, kind: str) -> tuple[list[TimingRow], int]:
    """Return the rows of the next table and the index of its closing rule."""
    head = text.find_line(_HEAD, start)
    if head is None or kind not in text.lines[head]:
        raise text.make_error(start, f"no table of {kind.lower()}usive times follows: the file is cut off")
    rows: list[TimingRow] = []
    for line in range(head + 2, len(text.lines)):
        if _RULE.match(text.lines[line]):
            return rows, line
        found = _ROW.match(text.lines[line])
        if found is None:
            raise text.make_error(line, "no line of a table of TinyProfiler")
        calls, least, mean, most = (text.parse_number(found[n], line) for n in (2, 3, 4, 5))
        rows.append(TimingRow(found[1], mean, least, most, calls=calls))
    raise text.make_error(len(text.lines) - 1, "the table ends before its closing line")
