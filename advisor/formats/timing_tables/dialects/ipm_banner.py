"""IPM: the banner that it prints at the end of a run (``report_banner.c``), MPI and I/O over the ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r"##IPMv\S+?#{5,}$")
_END: Final = re.compile(r"#{40,}$")
_COMMAND: Final = re.compile(r"# command   : (\S*)")
_TASKS: Final = re.compile(r"# mpi_tasks : (\d{1,9}) on (\d{1,9}) nodes")
_THREADS: Final = re.compile(r"# omp_thrds : (\d{1,9})")
_REGION: Final = re.compile(r"# region    :")
_ROW: Final = re.compile(r"# (wallclock|MPI|I/O) +: +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) *$")
_CALL: Final = re.compile(r"# (MPI_\w+) +([\d.]+) +(\d+) +([\d.]+)$")
_ROLES: Final = {"MPI": Role.COMM_OTHER, "I/O": Role.IO}


def parse(text: PlainText) -> TimingTable:
    """Return the sums of the whole run in the last banner; raises ``InputError`` where it is damaged or short."""
    titles = list(text.find_lines(_TITLE))
    if not titles:
        raise InputError(text.path, "holds no banner of IPM")
    start = titles[-1]
    end = text.find_line(_END, start + 1)
    if end is None:
        raise text.make_error(start, "the banner ends before its closing line")
    region = text.find_line(_REGION, start, end)
    stop = end if region is None else region
    matches = [(line, _match(text, _ROW, line)) for line in text.find_lines(_ROW, start, stop)]
    sums = {found[1]: (line, found) for line, found in matches}
    tasks = text.find_line(_TASKS, start, end)
    if "wallclock" not in sums or tasks is None:
        raise text.make_error(start, "the banner holds no sums over the tasks: IPM_REPORT=full makes IPM print them")
    ranks = int(_match(text, _TASKS, tasks)[1])
    seconds = {name: [text.parse_number(found[n], line) for n in (2, 3, 4, 5)] for name, (line, found) in sums.items()}
    for name, (total, mean, least, most) in seconds.items():
        if abs(total - ranks * mean) > 0.006 * (ranks + 1) or not least - 0.01 <= mean <= most + 0.01:
            raise text.make_error(sums[name][0], f"the sums of {name} contradict each other")
    rows = [
        TimingRow(name, mean, least, most, role=_ROLES[name])
        for name, (_, mean, least, most) in seconds.items()
        if name in _ROLES
    ]
    rows += _parse_calls(text, range(start, stop), ranks, [row.name for row in rows])
    command = text.find_line(_COMMAND, start, end)
    threads = text.find_line(_THREADS, start, end)
    return TimingTable(
        tool="IPM",
        program="" if command is None else _match(text, _COMMAND, command)[1].rsplit("/", 1)[-1],
        wall_s=seconds["wallclock"][3],
        shortest_s=seconds["wallclock"][2],
        rows=tuple(rows),
        ranks=ranks,
        threads=1 if threads is None else int(_match(text, _THREADS, threads)[1]),
    )


def _match(text: PlainText, pattern: re.Pattern[str], line: int) -> re.Match[str]:
    found = pattern.match(text.lines[line])
    if found is None:
        raise text.make_error(line, "no line of a banner of IPM")
    return found


def _parse_calls(text: PlainText, lines: range, ranks: int, above: list[str]) -> list[TimingRow]:
    """Return the calls of MPI below their sum; the banner holds seconds and counts of all ranks together."""
    if "MPI" not in above:
        return []
    found = []
    for line in text.find_lines(_CALL, lines.start, lines.stop):
        cells = _match(text, _CALL, line)
        name, role = classify_region(cells[1])
        seconds, calls = text.parse_number(cells[2], line), text.parse_number(cells[3], line)
        found.append(TimingRow(name, seconds / ranks, parent=above.index("MPI"), role=role, calls=calls / ranks))
    return found
