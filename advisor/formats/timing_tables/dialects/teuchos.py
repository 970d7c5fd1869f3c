"""Trilinos: the table of ``Teuchos::TimeMonitor::summarize`` (``Teuchos_TimeMonitor.cpp``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r"\s*TimeMonitor results over (\d{1,9}) processors?")
_HEAD: Final = re.compile(r"Timer Name +(MinOverProcs +MeanOverProcs +MaxOverProcs|Global time)")
_RULE: Final = re.compile(r"(-{10,}|={10,})$")
_CELL: Final = r"(\S+) \((\S+)\)"
_ROW: Final = re.compile(rf"(.*?\S) +{_CELL} +{_CELL} +{_CELL} +{_CELL} *$")
_ALONE: Final = re.compile(rf"(.*?\S) +{_CELL} *$")


def parse(text: PlainText) -> TimingTable:
    """Return the last table in the file; raises ``InputError`` where it is damaged."""
    titles = list(text.find_lines(_TITLE))
    if not titles:
        raise InputError(text.path, "holds no table of TimeMonitor")
    found = _TITLE.match(text.lines[titles[-1]])
    head = text.find_line(_HEAD, titles[-1], titles[-1] + 6)
    if found is None or head is None:
        raise text.make_error(titles[-1], "no table of TimeMonitor follows")
    ranks = int(found[1])
    rows = []
    for line in range(head + 2, len(text.lines)):
        if _RULE.match(text.lines[line]):
            break
        rows.append(_parse_row(text, line, ranks))
    else:
        raise text.make_error(len(text.lines) - 1, "the table ends before its closing line")
    wall_s, nested, notes = nest_timers(rows)
    return TimingTable(
        tool="Teuchos", program="", wall_s=wall_s, rows=nested, ranks=ranks, hides_waiting=True, language="cxx",
        notes=notes,
    )  # fmt: skip


def _parse_row(text: PlainText, line: int, ranks: int) -> TimingRow:
    found = (_ROW if ranks > 1 else _ALONE).match(text.lines[line])
    if found is None:
        raise text.make_error(line, "no line of a table of TimeMonitor")
    if ranks == 1:
        return TimingRow(found[1], text.parse_number(found[2], line), calls=text.parse_number(found[3], line))
    least, mean, most = (text.parse_number(found[n], line) for n in (2, 4, 6))
    return TimingRow(found[1], mean, least, most, calls=text.parse_number(found[5], line))
