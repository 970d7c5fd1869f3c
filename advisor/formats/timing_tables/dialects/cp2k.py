"""CP2K: the timing report at the end of its output (``timings_report.F``), seconds of each routine over the ranks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TITLE: Final = re.compile(r" - +T I M I N G +-$")
_RANKS: Final = re.compile(r" GLOBAL\| Total number of message passing processes +(\d{1,9})$")
_THREADS: Final = re.compile(r" GLOBAL\| Number of threads for this process +(\d{1,9})$")
_PROJECT: Final = re.compile(r" GLOBAL\| Project name +(\S+)$")
_STARTED: Final = re.compile(r".*PROGRAM STARTED AT +(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_ENDED: Final = re.compile(r".*PROGRAM ENDED AT ")
_ROW: Final = re.compile(r" (\S+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$")
_RULE: Final = re.compile(r" -{20,}$")
#: What the calls of CP2K's wrapper of MPI do, by the beginnings of their names without ``mp_``.
_CALLS: Final = (
    ("sum", Role.ALL_TO_ALL), ("max", Role.ALL_TO_ALL), ("min", Role.ALL_TO_ALL), ("alltoall", Role.ALL_TO_ALL),
    ("allgather", Role.ALL_TO_ALL), ("bcast", Role.ONE_TO_ALL), ("scatter", Role.ONE_TO_ALL),
    ("gather", Role.ALL_TO_ONE), ("sync", Role.BARRIER), ("wait", Role.WAIT), ("test", Role.WAIT),
    ("sendrecv", Role.SENDRECV), ("isend", Role.POST),
    ("irecv", Role.POST), ("send", Role.SEND), ("recv", Role.RECV), ("win_", Role.RMA), ("rget", Role.RMA),
    ("file_", Role.IO),
)  # fmt: skip


def parse(text: PlainText) -> TimingTable:
    """Return the report of routines; raises ``InputError`` where it is damaged or cut off."""
    title = text.find_line(_TITLE)
    if title is None:
        raise InputError(text.path, "the output ends before the timing report")
    routines: list[tuple[TimingRow, float, float]] = []
    for line in range(title + 5, len(text.lines)):
        if _RULE.match(text.lines[line]):
            break
        routines.append(_parse_routine(text, line))
    else:
        raise text.make_error(len(text.lines) - 1, "the timing report ends before its closing line")
    if not routines:
        raise text.make_error(title, "the timing report holds no routines")
    notes = () if text.find_line(_ENDED, title) else (Note("the log ends early", "CP2K did not end regularly", 0.2),)
    project, started = (_find_text(text, pattern, title) for pattern in (_PROJECT, _STARTED))
    ranks, threads = (int(_find_text(text, pattern, title) or 1) for pattern in (_RANKS, _THREADS))
    return TimingTable(
        tool="CP2K",
        program="cp2k",
        wall_s=max(total for _, _, total in routines),
        rows=tuple(row for row, _, _ in routines),
        ranks=ranks,
        threads=threads,
        run=project or "",
        started=started,
        language="fortran",
        notes=notes,
    )


def _find_text(text: PlainText, pattern: re.Pattern[str], stop: int) -> str | None:
    found = text.find_match(pattern, 0, stop)
    return found[1] if found else None


def _parse_routine(text: PlainText, line: int) -> tuple[TimingRow, float, float]:
    """Return a routine with its own seconds, and mean and most of those with what it calls."""
    found = _ROW.match(text.lines[line])
    if found is None:
        raise text.make_error(line, "no line of the timing report")
    calls, own, own_most, total, total_most = (text.parse_number(found[n], line) for n in (2, 4, 5, 6, 7))
    if own > total + 2e-3 or own > own_most + 2e-3 or total > total_most + 2e-3:
        raise text.make_error(line, "the seconds contradict each other")
    name = found[1]
    role = Role.USER
    if name.startswith("mp_"):
        role = next((role for begin, role in _CALLS if name[3:].startswith(begin)), Role.COMM_OTHER)
    return TimingRow(name, own, most_s=own_most, role=role, calls=calls), total, total_most
