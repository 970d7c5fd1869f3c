"""FMS (MOM, FV3, SHiELD, GFDL's models): the clocks that ``mpp_exit`` prints (``mpp_util.inc``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r"\s*Tabulating mpp_clock statistics across +(\d{1,9}) PEs")
_HEAD: Final = re.compile(r" +(hits +)?tmin +tmax +tavg +tstd +tfrac +grain +pemin +pemax *$")
_SECONDS: Final = r"(\d+\.\d+)"
_ROW: Final = re.compile(
    rf"(\S.*?)\s+(?:(\d{{1,18}})\s+)?{_SECONDS}\s+{_SECONDS}\s+{_SECONDS}\s+{_SECONDS}\s+(\d\.\d+)"
    r"\s+(\d+)\s+(\d{1,9})\s+(\d{1,9})\s*$"
)
#: What FMS prints behind the clocks.
_END: Final = re.compile(r"\s*MPP_STACK high water mark")
_WHOLE: Final = "Total runtime"
_FRACTION: Final = 0.0011
_ROUNDING_S: Final = 2e-6


def parse(text: PlainText) -> TimingTable:
    """Return the clocks of the run; raises ``InputError`` where they are damaged or missing."""
    titles = list(text.find_matches(_TITLE))
    head = text.find_line(_HEAD, titles[-1][0], titles[-1][0] + 4) if titles else None
    if head is None:
        raise InputError(text.path, "the log ends before the clocks of FMS")
    ranks = int(titles[-1][1][1])
    rows: dict[str, TimingRow] = {}
    line = head + 1
    while line < len(text.lines) and not _END.match(text.lines[line]):
        cells = _ROW.match(text.lines[line])
        if cells is None:
            raise text.make_error(line, "no line of the clocks, which end with MPP_STACK")
        rows[cells[1]] = _parse_row(text, line, cells, ranks)
        line += 1
    if line == len(text.lines):
        raise text.make_error(line - 1, "the clocks end before the line MPP_STACK")
    whole = rows.pop(_WHOLE, None)
    if whole is None:
        raise text.make_error(head, f"the clock {_WHOLE!r} is missing")
    _check_fractions(text, head, whole.mean_s, ranks)
    wall_s, nested, notes = nest_timers([row for row in rows.values() if row.mean_s > 0], whole.most_s)
    return TimingTable(
        tool="FMS", program="", wall_s=wall_s, shortest_s=whole.least_s, rows=nested, ranks=ranks, hides_waiting=True,
        language="fortran", notes=notes,
    )  # fmt: skip


def _parse_row(text: PlainText, line: int, cells: re.Match[str], ranks: int) -> TimingRow:
    """Return a clock: means are over the ranks it runs on, all others spend nothing in it."""
    least, most, mean, deviation = (text.parse_number(cells[n], line) for n in (3, 4, 5, 6))
    first, last = int(cells[9]), int(cells[10])
    if not first <= last < max(ranks, last + 1) or last - first >= ranks:
        raise text.make_error(line, f"ranks {first} to {last} of {ranks}")
    on = last - first + 1
    slack = _ROUNDING_S + 1e-9 * most
    if not least - slack <= mean <= most + slack or deviation > (most - least) / 2 + slack:
        raise text.make_error(line, "least, mean, most and deviation contradict each other")
    share = on / ranks
    calls = text.parse_number(cells[2], line) if cells[2] else float("nan")
    return TimingRow(cells[1], mean * share, least if on == ranks else 0.0, most, calls=calls * share)


def _check_fractions(text: PlainText, head: int, whole_s: float, ranks: int) -> None:
    """Raise ``InputError`` for a clock whose share of the run is not the one that stands beside it."""
    for line in range(head + 1, len(text.lines)):
        cells = _ROW.match(text.lines[line])
        if cells is None:
            return
        mean, share = text.parse_number(cells[5], line), text.parse_number(cells[7], line)
        if abs(mean - share * whole_s) > _FRACTION * whole_s:
            raise text.make_error(line, f"{mean:g} s are not {share:g} of the run")
