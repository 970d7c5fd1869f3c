"""PETSc: the text of ``-log_view`` (``logdefault.c``): the most of an event over the ranks, and the ratio to the least.

Events contain each other, and the text does not say which; so only the communication is told from the rest, and the
rest is the work. ``-log_view :FILE:ascii_xml`` writes all of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.dialects.petsc_events import classify_event, is_containing
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r"-{10,} PETSc Performance Summary: -{10,}$")
_RUN: Final = re.compile(r"(\S+) on a .* with (\d{1,9}) process(?:or|e)?s?(?:or)?(?:es)?\b.*?, by \S* ?(.*)$")
_TIME: Final = re.compile(r"Time \(sec\): +(\S+) +(\S+) +(\S+)$")
_MESSAGES: Final = re.compile(r"MPI (?:Msg Count|Messages): +(\S+) +(\S+) +(\S+) +(\S+)$")
_LENGTHS: Final = re.compile(r"MPI (?:Msg Len \(bytes\)|Message Lengths): +(\S+) +(\S+) +(\S+) +(\S+)$")
_STAGE: Final = re.compile(r"--- Event Stage \d+: (.*)$")
_END: Final = re.compile(r"-{100,}$")
_ROW: Final = re.compile(
    r"(\S.{0,15}?\S*?) +(\d+) +([\d.]+) +(\d\.\d+e[+-]\d+) *([\d.]+) +(\d\.\d+e[+-]\d+) *([\d.]+) +"
    r"(\S+) +(\S+) +(\S+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)\b"
)
_NO_TIME: Final = re.compile(r"(\S+) +(\d+) +([\d.]+) +n/a +n/a ")


def parse(text: PlainText) -> TimingTable:
    """Return the communication of the last log in the file; raises ``InputError`` where it is damaged."""
    titles = list(text.find_lines(_TITLE))
    if not titles:
        raise InputError(text.path, "holds no log of PETSc")
    start = titles[-1]
    run, wall = (_match_next(text, pattern, start) for pattern in (_RUN, _TIME))
    wall_s = text.parse_number(wall[1], start)
    ranks = int(run[2])
    rows = [row for row in _parse_events(text, start, ranks, wall_s) if row.role != Role.USER]
    if not rows:
        rows = [TimingRow("communication", 0.0, 0.0, 0.0, role=Role.COMM_OTHER)] if ranks > 1 else []
    work = TimingRow("computation", max(wall_s - sum(row.mean_s for row in rows), 0.0), role=Role.USER)
    messages, lengths = (text.find_line(pattern, start) for pattern in (_MESSAGES, _LENGTHS))
    counts = {}
    if messages is not None and lengths is not None:
        total = text.parse_number(_match_next(text, _MESSAGES, start)[4], messages)
        counts = {"messages": total, "bytes": text.parse_number(_match_next(text, _LENGTHS, start)[4], lengths)}
    note = Note(
        "events contain each other",
        "the text does not tell which events contain which: only communication is told from the rest",
        0.0,
        "-log_view :log.xml:ascii_xml",
    )
    return TimingTable(
        tool="PETSc", program=run[1].rsplit("/", 1)[-1], wall_s=wall_s, rows=(work, *rows), ranks=ranks,
        started=run[3].strip() or None, hides_waiting=True, counts=counts, notes=(note,),
    )  # fmt: skip


def _match_next(text: PlainText, pattern: re.Pattern[str], start: int) -> re.Match[str]:
    found = text.find_match(pattern, start)
    if found is None:
        raise text.make_error(start, f"the log ends before {pattern.pattern.split('(')[0].strip()[:20]!r}")
    return found


def _parse_events(text: PlainText, start: int, ranks: int, wall_s: float) -> list[TimingRow]:
    """Return the events of all stages, the same one of several stages added up; those that contain others left out."""
    stage = text.find_line(_STAGE, start)
    if stage is None:
        raise text.make_error(start, "the log ends before its events")
    found: dict[str, TimingRow] = {}
    for line in range(stage, len(text.lines)):
        if _END.match(text.lines[line]):
            return list(found.values())
        if not text.lines[line].strip() or _STAGE.match(text.lines[line]) or _NO_TIME.match(text.lines[line]):
            continue
        cells = _ROW.match(text.lines[line])
        if cells is None:
            if text.lines[line].startswith(("WARNING", " on some", " artificially")):
                continue
            raise text.make_error(line, "no line of PETSc's events")
        row = _build_row(text, line, cells, ranks, wall_s)
        other = found.get(row.name)
        if not is_containing(row.name):
            found[row.name] = row if other is None else _add_rows(other, row)
    raise text.make_error(len(text.lines) - 1, "the events end before their closing line")


def _build_row(text: PlainText, line: int, cells: re.Match[str], ranks: int, wall_s: float) -> TimingRow:
    """Return an event; the mean is its share of the run, to a per cent, where least and most allow that."""
    calls, most, ratio, percent = (text.parse_number(cells[n], line) for n in (2, 4, 5, 11))
    least = most / ratio if ratio >= 1 else 0.0
    lowest, highest = least + (most - least) / ranks, most - (most - least) / ranks
    mean = min(max(percent / 100 * wall_s, lowest), highest) if ranks > 1 else most
    return TimingRow(cells[1].strip(), mean, least, most, role=classify_event(cells[1].strip()), calls=calls)


def _add_rows(one: TimingRow, other: TimingRow) -> TimingRow:
    """Return an event of two stages: the most is at most the sum, the least at least the sum."""
    return TimingRow(
        one.name, one.mean_s + other.mean_s, one.least_s + other.least_s, one.most_s + other.most_s, role=one.role,
        calls=one.calls + other.calls,
    )  # fmt: skip
