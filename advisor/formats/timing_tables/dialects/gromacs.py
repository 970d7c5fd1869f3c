"""GROMACS: the cycle and time accounting at the end of its log (``wallcycle.cpp``), and what it lost to imbalance."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from advisor.formats.rank_extremes import CALLS
from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.support.stated_commands import state_command
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r"\s*R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G")
_ON: Final = re.compile(r"On (\d{1,9}) MPI ranks?(?: doing PP)?(?:, each using (\d{1,9}) OpenMP threads)?")
#: Before 5.0 ranks were nodes, and their number stood in the rows alone; before 4.6 seconds stood behind cycles.
_COMMAND: Final = re.compile(r"Command line:\s*$")
_PROCESSES: Final = re.compile(r"Using (\d{1,9}) MPI process(?:es)?\b")
_OLD: Final = re.compile(
    r" *Computing: +Nodes(?: +Th\.)? +(?:Number|Count) +(?:(G-Cycles +Seconds)|(?:Seconds|Wall t \(s\)) +G-Cycles) +%"
)
_OLD_ROW: Final = re.compile(
    r" (\S.{0,21}?)(?: \*)? {2,}(\d+)(?: +(\d+))?(?: +(\d+))? +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+)$"
)
_OLD_ROWS: Final = 40
_ON_PME: Final = re.compile(r" *(?:on|and) (\d{1,9}) MPI ranks? doing PME")
_RULE: Final = re.compile(r"-{20,}$")
_ROW: Final = re.compile(r" (\S.{0,21}?)( \*)? {2,}(?:(\d+) +(\d+) +(\d+) +)?([\d.]+) +([\d.]+) +([\d.]+)$")
_BREAKDOWN: Final = re.compile(r" Breakdown of (.+?) (?:computation|activities)")
_LOST: Final = re.compile(r" *Part of the total run time spent waiting due to load imbalance: ([\d.]+)%")
#: Rows are means over the ranks, the total is what passed: on thousands of ranks they differ by this share.
_MOST_OFF: Final = 0.05
_OFF: Final = 1.01
#: What GROMACS lists for all ranks, and ranks for PME alone spend inside of their row.
_INSIDE_PME: Final = "Wait PME GPU"
#: In which ranks for PME alone do nothing but wait; what others do in theirs is communication as well.
_ONLY_WAITS: Final = "PME wait for PP"
#: In which a rank waits for what its own device computes.
_FOR_DEVICE: Final = re.compile(r"Wait (?:\w+ )?GPU\b")
_FINISHED: Final = re.compile(r"Finished mdrun on (?:rank|node) \d+ ")
_ROLES: Final = {
    "Comm. coord.": Role.COMM_OTHER, "Wait + Comm. F": Role.COMM_OTHER, "DD comm. load": Role.COMM_OTHER,
    "DD comm. bounds": Role.COMM_OTHER, "Comm. energies": Role.COMM_OTHER, "Send X to PME": Role.COMM_OTHER,
    "Wait + Recv. PME F": Role.COMM_OTHER, "PME wait for PP": Role.COMM_OTHER, "Wait PME GPU spread": Role.WAIT,
    "PME redist. X/F": Role.COMM_OTHER, "PME 3D-FFT Comm.": Role.COMM_OTHER, "Vsite spread": Role.USER,
    "Write traj.": Role.IO, "Wait GPU NB nonloc.": Role.WAIT, "Wait GPU NB local": Role.WAIT,
    "Wait PME GPU gather": Role.WAIT, "Wait GPU state copy": Role.WAIT, "Wait Bonded GPU": Role.WAIT,
    "Wait GPU constraints": Role.WAIT,
}  # fmt: skip


def parse(text: PlainText) -> TimingTable:
    """Return the accounting of the run; raises ``InputError`` where it is damaged."""
    title = text.find_line(_TITLE)
    if title is None:
        raise InputError(text.path, "the log ends before the accounting of times")
    text = _renew_rows(text, title)
    on = text.find_line(_ON, title, title + 4)
    found = None if on is None else _ON.match(text.lines[on])
    if on is None or found is None:
        raise text.make_error(title, "the number of ranks does not follow")
    rows, wall_s, apart, end = _parse_rows(text, on)
    pme = _ON_PME.match(text.lines[on + 1]) or _ON_PME.search(text.lines[on])
    rows = _add_breakdowns(text, end, rows)
    shares = _Ranks(int(found[1]), int(pme[1]) if pme else 0)
    notes = []
    if text.find_line(_FINISHED, end) is None:
        notes.append(Note("the log ends early", "mdrun did not end regularly, or the log is cut off", 0.2))
    lost = text.find_match(_LOST, 0, title)
    if lost is not None and shares.total > 1:
        share = text.parse_number(lost[1], title) / 100
        rows = _raise_most(rows, share * wall_s)
    if pme:
        rows = _spread_over_kinds(rows, apart, shares)
    return TimingTable(
        tool="GROMACS", program="gmx mdrun", wall_s=wall_s, rows=tuple(rows), ranks=shares.total,
        threads=int(found[2] or 1), language="cxx", averages_ranks=bool(pme), parameters=_find_command(text, title),
        notes=tuple(notes),
    )  # fmt: skip


def _find_command(text: PlainText, title: int) -> dict[str, str | float]:
    """Return the command of the run: threads of a process can be ranks as well, which no launcher starts."""
    line = text.find_line(_COMMAND, 0, title)
    processes = text.find_match(_PROCESSES, 0, title)
    return {} if line is None else state_command(text.lines[line + 1], int(processes[1]) if processes else 1)


def _renew_rows(text: PlainText, title: int) -> PlainText:
    """Return the log with the table at ``title`` as GROMACS prints it since 5.0; as it is where it has that form."""
    head = text.find_line(_OLD, title, title + 4)
    if head is None:
        return text
    behind = bool((found := _OLD.match(text.lines[head])) and found[1])
    lines, ranks, threads = list(text.lines), 1, 1
    totals = [cells for _, cells in text.find_matches(_OLD_ROW, head, head + _OLD_ROWS) if cells[1] == "Total"]
    cycle_s = _find_cycle(totals[0], behind=behind) if totals else 0.0
    for line in range(head + 1, len(lines)):
        cells = _OLD_ROW.match(lines[line])
        if cells is None and not _RULE.match(lines[line]):
            break
        if cells is None:
            continue
        seconds, cycles = (cells[6], cells[5]) if behind else (cells[5], cells[6])
        seconds = f"{float(cycles) * cycle_s:.3f}" if cycle_s else seconds  # of which tenths are printed
        if cells[1] == "Total":
            lines[line] = f" Total {'':30} {seconds} {cycles} {cells[7]}"
            continue
        each, calls = (cells[3], cells[4]) if cells[4] else ("1", cells[3] or "1")
        ranks, threads = max(ranks, int(cells[2])), max(threads, int(each))
        lines[line] = f" {cells[1]:22}  {cells[2]} {each} {calls} {seconds} {cycles} {cells[7]}"
    lines[head] = f"On {ranks} MPI ranks, each using {threads} OpenMP threads"
    return replace(text, lines=tuple(lines))


def _find_cycle(total: re.Match[str], *, behind: bool) -> float:
    """Return how long 10^9 cycles of all ranks take."""
    seconds, cycles = (float(total[6]), float(total[5])) if behind else (float(total[5]), float(total[6]))
    return seconds / cycles if cycles > 0 else 0.0


def _parse_rows(text: PlainText, start: int) -> tuple[list[TimingRow], float, set[str], int]:
    """Return the rows of the main table, the seconds of its sum, the rows of ranks for PME alone, and the last line."""
    first = text.find_line(_RULE, start)
    if first is None:
        raise text.make_error(start, "no table follows")
    rows: list[TimingRow] = []
    apart: set[str] = set()
    for line in range(first + 1, len(text.lines)):
        if _RULE.match(text.lines[line]):
            continue
        found = _ROW.match(text.lines[line])
        if found is None:
            raise text.make_error(line, "no line of the accounting")
        seconds = text.parse_number(found[6], line)
        if found[1] == "Total":
            if not apart:  # what ranks do that compute forces as well is the run less its other rows
                rows = [row for row in rows if row.name != _ONLY_WAITS]
            together = sum(row.mean_s for row in rows if row.name not in apart)
            slack = 10.0 ** -len(found[6].partition(".")[2]) * len(rows)
            if apart and together > _OFF * seconds + slack:
                rows = [row for row in rows if not row.name.startswith(_INSIDE_PME)]
                together = sum(row.mean_s for row in rows if row.name not in apart)
            if abs(together - seconds) > _MOST_OFF * seconds + slack:
                raise text.make_error(line, f"the rows add up to {together:g} s, the total is {seconds:g} s")
            scale = min(seconds / together, 1.0) if together - seconds > slack else 1.0
            return [replace(row, mean_s=row.mean_s * scale) for row in rows], seconds, apart, line
        if found[2]:
            apart.add(found[1])
        calls = text.parse_number(found[5], line) if found[5] else 1.0
        role, waits = _ROLES.get(found[1], Role.USER), bool(_FOR_DEVICE.match(found[1]))
        rows.append(TimingRow(found[1], seconds, role=role, calls=calls, for_device=waits))
    raise text.make_error(len(text.lines) - 1, "the accounting ends before its total")


def _add_breakdowns(text: PlainText, start: int, rows: list[TimingRow]) -> list[TimingRow]:
    """Return ``rows`` with what the tables below break down, under the row of that name."""
    found = list(rows)
    for title in range(start, len(text.lines)):
        heading = _BREAKDOWN.match(text.lines[title])
        parent = next((number for number, row in enumerate(rows) if heading and row.name == heading[1]), None)
        if parent is None:
            continue
        for line in range(title + 2, len(text.lines)):
            cells = _ROW.match(text.lines[line])
            if cells is None:
                if not _RULE.match(text.lines[line]):
                    raise text.make_error(line, "no line of the accounting")
                break
            calls = text.parse_number(cells[5], line) if cells[5] else 1.0
            role = _ROLES.get(cells[1], Role.USER)
            seconds, waits = text.parse_number(cells[6], line), bool(_FOR_DEVICE.match(cells[1]))
            found.append(TimingRow(cells[1], seconds, parent=parent, role=role, calls=calls, for_device=waits))
        else:
            raise text.make_error(len(text.lines) - 1, "the breakdown ends before its closing line")
    return found


@dataclass(frozen=True, slots=True)
class _Ranks:
    """How many ranks compute forces, and how many do PME alone."""

    forces: int
    pme: int

    @property
    def total(self) -> int:
        return self.forces + self.pme


def _spread_over_kinds(rows: list[TimingRow], apart: set[str], ranks: _Ranks) -> list[TimingRow]:
    """Return ``rows`` with the seconds of each rank: those of forces have the one part of the table, of PME the other.

    The table holds means over the ranks of a kind; the first rank of forces stands for the slowest of them, which
    communicates as much shorter as it computes longer.
    """
    found: list[TimingRow] = []
    calls = sum(row.mean_s for row in rows if row.role in CALLS and row.name not in apart and row.parent < 0)
    longer = sum(row.most_s - row.mean_s for row in rows if row.most_s > row.mean_s)
    shorter = max(1 - longer / calls, 0.0) if calls else 1.0
    for row in rows:
        theirs = row.name in apart or (row.parent >= 0 and rows[row.parent].name in apart)
        forces, pme = (0.0, row.mean_s) if theirs else (row.mean_s, 0.0)
        first = (
            row.most_s if not theirs and row.most_s > row.mean_s else forces * shorter if row.role in CALLS else forces
        )
        each = (first, *((forces,) * (ranks.forces - 1)), *((pme,) * ranks.pme))
        waits = row.name == _ONLY_WAITS
        found.append(
            replace(
                row, mean_s=sum(each) / ranks.total, least_s=min(each), most_s=max(each), ranks_s=each, only_waits=waits
            )
        )
    return found


def _raise_most(rows: list[TimingRow], lost_s: float) -> list[TimingRow]:
    """Return ``rows`` where the slowest rank takes ``lost_s`` longer than the mean for the force, which is balanced.

    What the average rank waits for the slowest is the difference of the two.
    """
    return [
        replace(row, least_s=row.mean_s, most_s=row.mean_s + lost_s if row.name == "Force" else row.mean_s)
        if row.role == Role.USER and row.parent < 0 and not any(other.parent == number for other in rows)
        else row
        for number, row in enumerate(rows)
    ]
