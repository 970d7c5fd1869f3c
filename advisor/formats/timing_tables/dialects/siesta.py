"""SIESTA: the times of its routines, over the ranks (``SYSTEM.times``) or of a serial run (end of the output).

``m_timer.F90`` and ``timer_tree`` of SIESTA print them. The file states, for the busiest rank, the seconds of each
routine with all that it calls, and how the mean of the ranks compares with the slowest one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_RANKS: Final = re.compile(r"timer: Number of nodes = +(\d{1,9}) *$")
_WALL: Final = re.compile(r"timer: (?:Total elapsed wall-clock|Elapsed wall) time \(sec\) = +(\S+) *$")
_SUMS: Final = re.compile(r"(Calc|Comm|Tot): +Sum, Avge, myNode, Avg/Max = +(\S+) +(\S+) +(\S+) +(\S+) *$")
_TITLE: Final = re.compile(r"(?:Program +Calls +Prg\.com|Routine +Calls +Time/call)")
#: Calls, communication and its share, all and its share, mean by most.
_SHARED: Final = re.compile(r"(\S.{0,28}?) +(\d+) +\S+ +\S+ +(\d+\.\d+) +(\d\.\d+) +(\d\.\d+) *$")
#: Calls, seconds of a call, all, percent.
_SERIAL: Final = re.compile(r"(\S.{0,28}?) +(\d+) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) *$")
_PARALLEL: Final = re.compile(r"\* Running on +(\d{1,9}) +nodes in parallel")
#: What follows the table.
_SHARED_END: Final = re.compile(r"(?:No communications time|For |Nod\.avg|Prg\.|MPI total)")
_SERIAL_END: Final = re.compile(r"\s*$|>>")
_WHOLE: Final = "siesta"
_ROUNDING_S: Final = 2e-3
_SHARE: Final = 2e-3


def parse(text: PlainText) -> TimingTable:
    """Return the routines of the run; raises ``InputError`` where their table is damaged or the run ended before it."""
    title = text.find_line(_TITLE)
    wall = next(iter(text.find_matches(_WALL, 0, title)), None)
    if title is None or wall is None:
        raise InputError(text.path, "the output ends before the times of SIESTA's routines")
    wall_s = text.parse_number(wall[1][1], wall[0])
    stated = text.find_match(_RANKS) or text.find_match(_PARALLEL)
    ranks = int(stated[1]) if stated else 1
    shared = text.lines[title].startswith("Program")
    sums = _parse_sums(text, title, ranks) if shared else {}
    rows = _parse_rows(text, title, wall_s, shared)
    whole_s = max(wall_s, sums["Tot"][1] if "Tot" in sums else 0.0)
    if "Comm" in sums:
        # Each routine holds communication of others that it calls: only the sums keep it apart.
        (calc, calc_most), (comm, comm_most) = sums["Calc"], sums["Comm"]
        rows = [TimingRow("computation", calc, most_s=calc_most, role=Role.USER),
                TimingRow("communication", comm, most_s=comm_most, role=Role.COMM_OTHER),
                TimingRow(NOT_ON_CORE, max(whole_s - calc - comm, 0.0), role=Role.OS)]  # fmt: skip
    _, nested, notes = nest_timers([row for row in rows if row.mean_s > 0], whole_s)
    return TimingTable(
        tool="SIESTA", program="siesta", wall_s=whole_s, rows=nested, ranks=ranks, hides_waiting="Comm" not in sums,
        first_rank=not shared, language="fortran", notes=notes,
    )  # fmt: skip


def _parse_sums(text: PlainText, stop: int, ranks: int) -> dict[str, tuple[float, float]]:
    """Return mean and most over the ranks of computation, communication and both."""
    found = {}
    for line, cells in text.find_matches(_SUMS, 0, stop):
        total, mean, mine, share = (text.parse_number(cells[n], line) for n in range(2, 6))
        if abs(total - ranks * mean) > _ROUNDING_S * ranks or not 0 < share <= 1 + _SHARE:
            raise text.make_error(line, "sum, mean and ranks contradict each other")
        if mine > (mean + _ROUNDING_S) / max(share - _SHARE, _SHARE):
            raise text.make_error(line, "a rank takes longer than the slowest one")
        found[cells[1]] = mean, max(mean / share, mine)
    if not {"Calc", "Tot"} <= found.keys():
        raise text.make_error(stop, "the times of all ranks together are missing")
    return found


def _parse_rows(text: PlainText, title: int, wall_s: float, shared: bool) -> list[TimingRow]:
    """Return the routines but the whole run; of the slowest rank no less is known than of the one that is printed."""
    form, end = (_SHARED, _SHARED_END) if shared else (_SERIAL, _SERIAL_END)
    line = title + (2 if shared else 1)
    rows: list[TimingRow] = []
    whole_s = 0.0
    while line < len(text.lines) and not end.match(text.lines[line]):
        cells = form.match(text.lines[line])
        if cells is None:
            raise text.make_error(line, "no line of the times of routines")
        calls, first, second, third = (text.parse_number(cells[n], line) for n in range(2, 6))
        seconds_s, part = (first, second) if shared else (second, third / 100)
        if cells[1] == _WHOLE:
            whole_s = seconds_s
            if not 0 < whole_s <= wall_s * 1.5 + 1:
                raise text.make_error(line, "the run takes longer than its elapsed time")
        elif abs(seconds_s - part * whole_s) > _SHARE * whole_s + _ROUNDING_S:
            raise text.make_error(line, f"{seconds_s:g} s are not {part:g} of the run")
        else:
            rows.append(_make_row(cells[1], calls, seconds_s, third if shared else None))
        line += 1
    if line == len(text.lines) or not whole_s:
        raise text.make_error(line - 1, "the table of routines does not end")
    return rows


def _make_row(name: str, calls: float, seconds_s: float, ratio: float | None) -> TimingRow:
    """Return a routine; its mean is the ``ratio`` of its most, which are at least those of the rank that is printed."""
    if ratio is None:
        return TimingRow(name, seconds_s, calls=calls)
    return TimingRow(name, min(ratio, 1.0) * seconds_s, most_s=seconds_s, calls=calls)
