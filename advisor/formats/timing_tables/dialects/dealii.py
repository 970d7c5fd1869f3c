"""deal.II: the tables of ``TimerOutput`` (``timer.cc``), the summary and the statistics over the ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.rank_counts import find_rank_count
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r"\| Total wallclock time elapsed (?:since start)? *\|")
_RULE: Final = re.compile(r"\+-{10,}")
_SECONDS: Final = re.compile(r" *([0-9.e+-]+)s(?: +(\d+))? *$")


def parse(text: PlainText) -> TimingTable:
    """Return the last table in the file; raises ``InputError`` where it is damaged."""
    titles = list(text.find_lines(_TITLE))
    if not titles:
        raise InputError(text.path, "holds no table of TimerOutput")
    title = titles[-1]
    cells = text.lines[title].strip().strip("|").split("|")
    if len(cells) < 2:
        raise text.make_error(title, "no line of a table of TimerOutput")
    over_ranks = "since start" not in text.lines[title]
    wall_s = _parse_seconds(text, cells[-1 if over_ranks else 1], title)
    head = text.find_line(_RULE, title)
    rows = []
    for line in range(head + 1 if head is not None else len(text.lines), len(text.lines)):
        if _RULE.match(text.lines[line]):
            break
        rows.append(_parse_row(text, line, over_ranks))
    else:
        raise text.make_error(len(text.lines) - 1, "the table ends before its closing line")
    _, nested, notes = nest_timers(rows, wall_s)
    return TimingTable(
        tool="deal.II", program="", wall_s=wall_s, rows=nested, ranks=find_rank_count(text, title),
        hides_waiting=True, language="cxx", notes=notes,
    )  # fmt: skip


def _parse_row(text: PlainText, line: int, over_ranks: bool) -> TimingRow:
    cells = text.lines[line].strip().strip("|").split("|")
    if len(cells) < 4:
        raise text.make_error(line, "no line of a table of TimerOutput")
    name, calls = cells[0].strip(), text.parse_number(cells[1].strip(), line)
    if not over_ranks:
        return TimingRow(name, _parse_seconds(text, cells[2], line), calls=calls)
    if len(cells) not in (5, 7):
        raise text.make_error(line, "no line of a table of TimerOutput")
    least, mean, most = (_parse_seconds(text, cells[n], line) for n in (2, len(cells) // 2 + 1, -1))
    least_at, most_at = (int((_SECONDS.match(cells[n]) or [0, 0, -1])[2] or -1) for n in (2, -1))
    return TimingRow(name, mean, least, most, least_at, most_at, calls=calls)


def _parse_seconds(text: PlainText, cell: str, line: int) -> float:
    found = _SECONDS.match(cell)
    if found is None:
        raise text.make_error(line, f"{cell.strip()[:80]!r} are no seconds")
    return text.parse_number(found[1], line)
