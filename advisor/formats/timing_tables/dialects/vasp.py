"""VASP: the times of its routines and of the job in ``OUTCAR``, of the first rank (``timing_.F``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.flat_timers import nest_timers
from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_DATE: Final = re.compile(r" *executed on .* date (\d{4})\.(\d\d)\.(\d\d) +(\d\d:\d\d:\d\d)")
_RANKS: Final = re.compile(
    r" *running(?: on)? +(\d{1,9}) (?:total cores|nodes|mpi-ranks)(?:, with +(\d{1,9}) threads)?"
)
_GROUPS: Final = re.compile(r" *distrk: +each k-point on +(\d{1,9}) cores, +(\d{1,9}) groups")
_BANDS: Final = re.compile(r" *distr: +one band on +\S+= *(\d{1,9}) cores, +(\d{1,9}) groups")
_PARTS: Final = re.compile(r" *k-points +NKPTS = *(\d{1,7}) ")
#: Up to 5.2 what is called CPU time is the time that passed.
_ROW: Final = re.compile(r" *(\S.{0,9}?): +(?:cpu|VPU) time *([\d.]+): (?:real|CPU) time *([\d.]+) *$")
_TIMED: Final = re.compile(r" *\S.{0,9}: .{0,3}(?:cpu|VPU) time|.{10,30}: (?:real|CPU) time")
#: Fortran prints stars where a number is too large.
_STARS: Final = "****"
_JOB: Final = re.compile(r" General timing and accounting informations for this job:")
_CPU: Final = re.compile(r" +Total CPU time used \(sec\): +([\d.]+) *$")
_USER: Final = re.compile(r" +User time \(sec\): +([\d.]+) *$")
_SYSTEM: Final = re.compile(r" +System time \(sec\): +([\d.]+) *$")
_ELAPSED: Final = re.compile(r" +Elapsed time \(sec\): +([\d.]+) *$")
#: The last line of the accounting.
_END: Final = re.compile(r" +Voluntary context switches: +\S+ *$")
#: Steps, which contain the routines.
_STEPS: Final = ("LOOP", "LOOP+")
_ROUNDING_S: Final = 0.02
#: Ranks that write at the same time tear a line now and then; more than this share are damage.
_TORN: Final = 0.01
_OFF: Final = 1.02


def parse(text: PlainText) -> TimingTable:
    """Return the routines of the run; raises ``InputError`` where the job did not reach its end, or is damaged."""
    jobs = list(text.find_lines(_JOB))
    if not jobs or text.find_line(_END, jobs[-1], jobs[-1] + 16) is None:
        raise InputError(text.path, "the output ends before the accounting of the job: the run did not get there")
    cpu_s, user_s, system_s, wall_s = (
        _find_seconds(text, pattern, jobs[-1]) for pattern in (_CPU, _USER, _SYSTEM, _ELAPSED)
    )
    if abs(user_s + system_s - cpu_s) > _ROUNDING_S + 1e-6 * cpu_s:
        raise text.make_error(jobs[-1], "the CPU time is not that of user and system")
    ranks, groups, bands = (text.find_match(pattern) for pattern in (_RANKS, _GROUPS, _BANDS))
    count, threads = (int(ranks[1]), int(ranks[2] or 1)) if ranks else (1, 1)
    rows, torn = _collect_routines(text, jobs[-1])
    if count == threads == 1 and wall_s - cpu_s > _ROUNDING_S:
        rows.append(TimingRow(NOT_ON_CORE, wall_s - cpu_s, role=Role.OS, calls=1))
    _, nested, notes = nest_timers(rows, wall_s)
    date = text.find_match(_DATE)
    parts = text.find_match(_PARTS)
    parameters = {
        "k-points": parts and int(parts[1]), "k-point groups": groups and int(groups[2]),
        "ranks on a band": bands and int(bands[1]),
    }  # fmt: skip
    return TimingTable(
        tool="VASP", program="vasp", wall_s=wall_s, rows=nested or (TimingRow("job", wall_s, calls=1),),
        ranks=count, threads=threads, hides_waiting=True, first_rank=True, language="fortran",
        cpu_s=cpu_s,
        started=f"{date[1]}-{date[2]}-{date[3]} {date[4]}" if date else None, notes=(*notes, *torn),
        parameters={name: value for name, value in parameters.items() if value},
    )  # fmt: skip


def _find_seconds(text: PlainText, pattern: re.Pattern[str], start: int) -> float:
    for line, found in text.find_matches(pattern, start, start + 12):
        return text.parse_number(found[1], line)
    raise text.make_error(start, "the accounting of the job lacks a time")


def _collect_routines(text: PlainText, stop: int) -> tuple[list[TimingRow], tuple[Note, ...]]:
    """Return the routines with all their calls, and a note of lines that ranks wrote into each other.

    Raises ``InputError`` where more lines than these few do not say how long they took, and for routines that take
    longer than their step.
    """
    spent: dict[str, list[float]] = {}
    torn: list[int] = []
    longest = 0.0
    timed = list(text.find_lines(_TIMED, 0, stop))
    for line in timed:
        cells = _ROW.match(text.lines[line])
        if cells is None:
            torn += [] if _STARS in text.lines[line] else [line]
            if len(torn) > max(_TORN * len(timed), 1):
                raise text.make_error(torn[0], "no line of times")
            continue
        name, wall_s = cells[1], text.parse_number(cells[3], line)
        seconds = spent.setdefault(name, [0.0, 0.0])
        seconds[0] += wall_s
        seconds[1] += 1
        if name in _STEPS:
            if longest > _OFF * wall_s + _ROUNDING_S:
                raise text.make_error(line, "a routine takes longer than the step that it is in")
            longest = 0.0
        longest = max(longest, 0.0 if name in _STEPS else wall_s)
    rows = [
        TimingRow(name, total, role=Role.USER, calls=calls)
        for name, (total, calls) in spent.items()
        if name not in _STEPS and total > 0
    ]
    return rows, (Note("lines not read", f"times in line {torn[0] + 1} are no numbers", 0.1),) if torn else ()
