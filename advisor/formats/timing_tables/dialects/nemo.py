"""NEMO: ``timing.output`` (``timing.F90`` of 3.4 to 4.0, with ``nn_timing = 1`` or ``ln_timing``).

Sections are listed without what other sections in them take. Their percentages are those of the mean rank's elapsed
time. With MPI, elapsed and CPU times of each rank follow.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.dates import check_dates
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TOTAL: Final = re.compile(r" Total timing \(sum\) :")
_SUMS: Final = re.compile(r" +(\d+\.\d+) +(\d+\.\d+) *$")
_MEANS: Final = re.compile(r"Averaged timing on all processors :")
_FIRST: Final = re.compile(r" Detailed timing for proc : +(\d+)")
_DATE: Final = re.compile(r" Timing (?:started|  ended) on (\d\d/\d\d/\d{4} at \d\d:\d\d:\d\d)")
#: Section, elapsed seconds and per cent, CPU seconds and per cent, ratio, most and least in per cent, calls.
_NUMBER: Final = r"(-?\d*\.\d+(?:E[+-]\d+)?)"
_MEAN: Final = re.compile(rf"(\S.{{0,19}}?) +{_NUMBER} +{' +'.join([_NUMBER] * 6)} +{_NUMBER} *$")
_ONE: Final = re.compile(rf" (\S.{{0,19}}?) +{_NUMBER} +{' +'.join([_NUMBER] * 4)} +(\d+) *$")
_RANK: Final = re.compile(r" +(\d{1,9}) +\| +(\d+\.\d+) +\| +(\d+\.\d+) +\| +(\d+\.\d+) *$")
_SUMMARY: Final = re.compile(r" (Total|Minimum|Maximum|Average) +\| +(\d+\.\d+) +\| +(\d+\.\d+) +\|")
_END: Final = re.compile(r" Timing   ended on ")
#: What sections do, by the beginnings of their names; all others work, and may exchange halos.
_SECTIONS: Final = (
    ("dia_wri", Role.IO), ("iom_", Role.IO), ("rst_", Role.IO), ("trc_rst", Role.IO), ("sbc_cpl_rcv", Role.COMM_OTHER),
    ("sbc_cpl_snd", Role.COMM_OTHER), ("lbc_", Role.COMM_OTHER), ("mpp_", Role.COMM_OTHER),
)  # fmt: skip
#: Seconds have three digits, per cents two.
_ROUNDING_S: Final = 2e-3
_PERCENT: Final = 0.011


def parse(text: PlainText) -> TimingTable:
    """Return the sections of the run; raises ``InputError`` where they are damaged, or the run ended before it."""
    total = text.find_line(_TOTAL)
    if total is None or text.find_line(_END, total) is None:
        raise InputError(text.path, "the file ends before the line 'Timing ended': the run did not get there")
    sums = next(iter(text.find_matches(_SUMS, total, total + 5)), None)
    if sums is None:
        raise text.make_error(total, "the sum of the elapsed times is missing")
    whole_s = text.parse_number(sums[1][1], sums[0])
    ranks = _read_ranks(text, total, whole_s)
    count = len(ranks) or 1
    walls = [wall_s for wall_s, _ in ranks] or [whole_s]
    means = text.find_line(_MEANS, total)
    # Of one rank, or of sections that not all ranks have, the table of the first one is all there is.
    rows = _read_first(text, total, walls[0]) if means is None else _read_means(text, means, whole_s / count)
    begin, end = _read_dates(text, total)
    check_dates(text, total, begin, end, max(walls))
    return TimingTable(
        tool="NEMO", program="nemo", wall_s=max(walls), shortest_s=min(walls), rows=tuple(rows), ranks=count,
        hides_waiting=True, first_rank=means is None, language="fortran",
        cpu_s=ranks[0][1] if ranks and means is None else float("nan"),
        started=str(begin),
    )  # fmt: skip


def _read_dates(text: PlainText, start: int) -> tuple[datetime, datetime]:
    """Return when the run began and ended."""
    found = list(text.find_matches(_DATE, start))
    if len(found) != 2:
        raise text.make_error(start, "the dates of begin and end are not both there")
    try:
        begin, end = (datetime.strptime(cells[1], "%d/%m/%Y at %H:%M:%S") for _, cells in found)
    except ValueError:
        raise text.make_error(found[0][0], "no date") from None
    return begin, end


def _read_ranks(text: PlainText, start: int, whole_s: float) -> list[tuple[float, float]]:
    """Return elapsed and CPU seconds of each rank; empty for a run without MPI."""
    found = [(line, cells) for line, cells in text.find_matches(_RANK, start)]
    if [int(cells[1]) for _, cells in found] != list(range(len(found))):
        raise text.make_error(found[0][0], "the ranks of the summary are not all there, once each and in order")
    ranks = [(text.parse_number(cells[2], line), text.parse_number(cells[3], line)) for line, cells in found]
    stated = {cells[1]: (line, cells) for line, cells in text.find_matches(_SUMMARY, start)}
    if ranks and not stated.keys() >= {"Total", "Average"}:
        raise text.make_error(found[-1][0], "the summary of the ranks does not end")
    if ranks:
        line, cells = stated["Total"]
        walls = sum(wall_s for wall_s, _ in ranks)
        if max(abs(walls - whole_s), abs(walls - text.parse_number(cells[2], line))) > _ROUNDING_S * len(ranks):
            raise text.make_error(line, "the elapsed times of the ranks do not add up to the total")
    return ranks


def _read_means(text: PlainText, title: int, wall_s: float) -> list[TimingRow]:
    """Return the sections with least, mean and most over the ranks."""
    rows: list[TimingRow] = []
    for line in range(title + 3, len(text.lines)):
        cells = _MEAN.match(text.lines[line])
        if cells is None:
            if not text.lines[line].strip():
                break
            raise text.make_error(line, "no line of the averaged timing")
        mean, share, most, least = (float(cells[n]) for n in (2, 3, 7, 8))
        if abs(mean / wall_s * 100 - share) > _PERCENT + 1e-4 * abs(share):
            raise text.make_error(line, f"{mean:g} s are not {share:g} % of the run")
        if not least - _PERCENT <= share <= most + _PERCENT:
            raise text.make_error(line, "the mean is not between the least and the most")
        if mean > 0:  # a timer that others are taken off from twice ends below zero
            least_s, most_s = max(least, 0.0) * wall_s / 100, most * wall_s / 100
            role, calls = _classify_section(cells[1]), text.parse_number(cells[9], line)
            rows.append(TimingRow(cells[1], mean, min(least_s, mean), max(most_s, mean), role=role, calls=calls))
    return rows


def _read_first(text: PlainText, start: int, wall_s: float) -> list[TimingRow]:
    """Return the sections of the one rank that is listed."""
    title = text.find_line(_FIRST, start)
    rows: list[TimingRow] = []
    for line in range(title + 3 if title is not None else len(text.lines), len(text.lines)):
        cells = _ONE.match(text.lines[line])
        if cells is None:
            if not text.lines[line].strip():
                break
            raise text.make_error(line, "no line of the detailed timing")
        seconds, share = float(cells[2]), float(cells[3])
        if abs(seconds / wall_s * 100 - share) > _PERCENT + 1e-3 * abs(share):
            raise text.make_error(line, f"{seconds:g} s are not {share:g} % of the run")
        if seconds > 0:
            rows.append(TimingRow(cells[1], seconds, role=_classify_section(cells[1]), calls=float(cells[7])))
    return rows


def _classify_section(name: str) -> Role:
    return next((role for begin, role in _SECTIONS if name.startswith(begin)), Role.USER)
