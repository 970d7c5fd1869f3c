"""ABINIT: the code sections of the first rank, between ``<BEGIN_TIMER …>`` and ``<END_TIMER>`` (``m_time.F90``)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_BEGIN: Final = re.compile(r"-<BEGIN_TIMER mpi_nprocs = +(\d{1,9}), omp_nthreads = +(\d{1,9}), mpi_rank = +0>")
_TIMES: Final = re.compile(r"- cpu_time = +(\S+), wall_time = +(\S+) *$")
_END: Final = re.compile(r"-<END_TIMER>")
_TITLE: Final = re.compile(r"- routine +cpu +% +wall +% ")
_ROW: Final = re.compile(r"- (\S.{0,30}?) +(\d+\.\d+) +(\d+\.\d) +(\d+\.\d+) +(\d+\.\d) +(-?\d+) ")
_SUBTOTAL: Final = re.compile(r"- subtotal +(\S+) +\S+ +(\S+) +\S+(?: +\S+ +\S+)? *$")
#: Sections are printed to the millisecond, shares to a tenth of a percent, the run to a tenth of a second.
_ROUNDING_S: Final = 0.06
_SHARE: Final = 1.1e-3


def parse(text: PlainText) -> TimingTable:
    """Return the sections of the run; raises ``InputError`` where they are damaged or the run ended before them."""
    first = next(text.find_matches(_BEGIN), None)
    if first is None:
        raise InputError(text.path, "the output holds no sections of the first rank")
    begin, (ranks, threads) = first[0], map(int, first[1].groups())
    end, times = text.find_line(_END, begin), next(text.find_matches(_TIMES, begin, begin + 3), None)
    title = text.find_line(_TITLE, begin, begin + 6)
    if end is None or times is None or title is None:
        raise text.make_error(begin, "the sections do not reach <END_TIMER>")
    cpu_s, wall_s = (text.parse_number(times[1][n], times[0]) for n in (1, 2))
    rows = [_parse_row(text, line, wall_s, cpu_s) for line in range(title + 2, end) if text.lines[line].strip(" -")]
    _check_sum(text, end, rows)
    return TimingTable(
        tool="ABINIT", program="abinit", wall_s=wall_s, rows=tuple(row for row in rows if row.mean_s > 0), ranks=ranks,
        threads=max(threads, 1), hides_waiting=True, first_rank=True, language="fortran",
        cpu_s=cpu_s if threads <= 1 and cpu_s <= wall_s else math.nan,
    )  # fmt: skip


def _parse_row(text: PlainText, line: int, wall_s: float, cpu_s: float) -> TimingRow:
    cells = _ROW.match(text.lines[line])
    if cells is None:
        raise text.make_error(line, "no line of the sections")
    on_core, on_core_share, seconds_s, share = (text.parse_number(cells[n], line) for n in (2, 3, 4, 5))
    for value, part, whole in ((on_core, on_core_share, cpu_s), (seconds_s, share, wall_s)):
        if abs(value - part / 100 * whole) > _SHARE * whole + _ROUNDING_S:
            raise text.make_error(line, f"{value:g} s are not {part:g} % of the run")
    calls = int(cells[6])
    return TimingRow(cells[1], seconds_s, calls=calls if calls >= 0 else math.nan)


def _check_sum(text: PlainText, end: int, rows: list[TimingRow]) -> None:
    """Raise ``InputError`` where the sections are not what they sum up to."""
    found = next(text.find_matches(_SUBTOTAL, end, end + 4), None)
    if found is None:
        raise text.make_error(end, "the sum of the sections is missing")
    total = text.parse_number(found[1][2], found[0])
    if abs(total - sum(row.mean_s for row in rows)) > 1e-3 * (len(rows) + 1):
        raise text.make_error(found[0], f"the sections do not sum up to {total:g} s")
