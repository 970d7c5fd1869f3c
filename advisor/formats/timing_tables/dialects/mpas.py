"""MPAS: the timers at the end of the log of its first task (``mpas_timer_write`` of ``mpas_timer.F``).

Of each timer the log states the seconds of the slowest task, and the mean over tasks and calls of a call's seconds.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r" +timer_name +total +calls +min +max +avg +pct_tot +pct_par")
_TASKS: Final = re.compile(r"Beginning (MPAS-\S+) Output Log File for task +\d+ of +(\d{1,9}) *$")
_END: Final = re.compile(r" *(?:Total log messages printed:|Logging complete\.)")
_NUMBERS: Final = 7
_ROW: Final = re.compile(rf" *(\d{{1,3}}) +(\S.*?)((?: +[-+.\deE]+){{{_NUMBERS},{_NUMBERS + 1}}}) *$")
#: Seconds are printed with five digits behind the point.
_ROUNDING_S: Final = 1e-5
_SLACK: Final = 1.01
_PERCENT: Final = 0.02


def parse(text: PlainText) -> TimingTable:
    """Return the timers of the run; raises ``InputError`` where their table is damaged or the log has no end."""
    title = text.find_line(_TITLE)
    if title is None:
        raise InputError(text.path, "the log ends before the timers of MPAS")
    end = next((n for n in range(title + 1, len(text.lines)) if not text.lines[n].strip()), None)
    if end is None or text.find_line(_END, end) is None:
        raise text.make_error(len(text.lines) - 1, "the table of timers does not end")
    rows: list[TimingRow] = []
    room: list[float] = []
    above: list[tuple[int, int]] = []  # level, row; -1: left out
    whole_s, left = math.nan, 0
    for line in range(title + 1, end):
        level, row = _parse_row(text, line, whole_s)
        if math.isnan(whole_s):
            whole_s = row.most_s
            if level != 1 or not whole_s > 0:
                raise text.make_error(line, "the first timer is not that of the run")
            continue
        while above and above[-1][0] >= level:
            above.pop()
        parent = above[-1][1] if above else -1
        fits = not above or (parent >= 0 and row.mean_s <= _SLACK * room[parent] + _ROUNDING_S * row.calls)
        above.append((level, len(rows) if fits else -1))
        if fits:
            rows.append(TimingRow(row.name, row.mean_s, most_s=row.most_s, parent=parent, calls=row.calls))
            room.append(row.mean_s)
            if parent >= 0:
                room[parent] -= row.mean_s
        left += not fits
    if math.isnan(whole_s):
        raise text.make_error(title, "the table holds no timer")
    found = text.find_match(_TASKS)
    words = f"{left} of {left + len(rows)} timers do not fit into those that contain them, which hold their time"
    return TimingTable(
        tool="MPAS", program=found[1] if found else "", wall_s=whole_s, rows=tuple(rows),
        ranks=int(found[2]) if found else None, hides_waiting=True, language="fortran",
        notes=(Note("timers left out", words),) if left else (),
    )  # fmt: skip


def _parse_row(text: PlainText, line: int, whole_s: float) -> tuple[int, TimingRow]:
    """Return the level of a timer, and its row."""
    cells = _ROW.match(text.lines[line])
    if cells is None:
        raise text.make_error(line, "no line of a timer")
    numbers = [text.parse_number(cell, line) for cell in cells[3].split()]
    total, calls, least, most, mean, share = numbers[:6]
    if calls < 1 or not least <= mean <= most or most > total + _ROUNDING_S:
        raise text.make_error(line, "the seconds of calls contradict each other")
    if mean * calls > total + _ROUNDING_S * calls:
        raise text.make_error(line, "the mean task takes longer than the slowest one")
    if not math.isnan(whole_s) and abs(share / 100 - total / whole_s) > _PERCENT / 100 + _ROUNDING_S / whole_s:
        raise text.make_error(line, f"{total:g} s are not {share:g} % of the run")
    told = len(numbers) > _NUMBERS and total > 0
    if told and abs(numbers[-1] - mean * calls / total) > _PERCENT + _ROUNDING_S * calls / total:
        raise text.make_error(line, "mean and slowest task do not make the parallel efficiency")
    return int(cells[1]), TimingRow(cells[2], min(mean * calls, total), most_s=total, calls=calls)
