"""LAMMPS, SPARTA, SPPARKS: the task timing breakdown that they print after each run (``finish.cpp``).

SPPARKS and LAMMPS before 2014 print means alone, ``Comm  time (%) = 0.245 (13.2)``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import SHARED_CORES, Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_LOOP: Final = re.compile(
    r"Loop time of (\S+) on (\d{1,9}) procs(?: for (\d{1,18}) steps with (\d{1,18}) (atoms|particles))?\s*$"
)
_MEAN: Final = re.compile(r"(\w+) +time \(%\) = (\S+) \((\S+)\)\s*$")
_NAME: Final = re.compile(r"(LAMMPS|SPARTA|SPPARKS) \(")
_PROGRAMS: Final = {"LAMMPS": "lmp", "SPARTA": "spa", "SPPARKS": "spk"}
_TABLE: Final = re.compile(r"MPI task timing breakdown:")
_CPU: Final = re.compile(r"\s*([\d.]+)% CPU use with (\d{1,9}) MPI tasks x (\d{1,9}) OpenMP threads")
_END: Final = re.compile(r"Total wall time: ")
_ROLES: Final = {"Comm": Role.COMM_OTHER, "Output": Role.IO, "Outpt": Role.IO}
_OVERLOADED: Final = 80.0  # per cent
#: A task that takes no more of a core than this ran one thread, whatever it was given.
_ONE_THREAD: Final = 110.0


def parse(text: PlainText) -> TimingTable:
    """Return the longest of the runs in a log; raises ``InputError`` where its breakdown is damaged."""
    named = text.find_match(_NAME)
    tool = named[1] if named else "LAMMPS"
    loops = list(text.find_lines(_LOOP))
    if not loops:
        raise InputError(text.path, "the log ends before the first run did: there is no 'Loop time' in it")
    ends = [*loops[1:], len(text.lines)]
    runs = [run for start, end in zip(loops, ends, strict=True) if (run := _parse_run(text, start, end, tool))]
    if not runs:
        reason = "no breakdown of the loop time follows: 'timer normal' makes LAMMPS print it"
        raise text.make_error(loops[-1], reason)
    longest = max(runs, key=lambda run: run.wall_s)
    notes = list(longest.notes)
    if len(loops) > 1:
        kind = "longest" if len(runs) == len(loops) else "longest with a breakdown"
        text_of_runs = f"the log holds {len(loops)} runs; the {kind} is shown, of {longest.wall_s:.4g} s"
        notes.append(Note("several runs in a log", text_of_runs))
    if tool == "LAMMPS" and text.find_line(_END) is None:  # the others print nothing at their end
        notes.append(Note("the log ends early", "LAMMPS did not end regularly: a later run may be missing", 0.2))
    return TimingTable(**{**{name: getattr(longest, name) for name in longest.__slots__}, "notes": tuple(notes)})


def _parse_run(text: PlainText, line: int, end: int, tool: str) -> TimingTable | None:
    """Return the run whose loop ended at ``line``, before that of the next one; None without a breakdown."""
    found = _LOOP.match(text.lines[line])
    assert found is not None
    wall_s = text.parse_number(found[1], line)
    start = text.find_line(_TABLE, line, min(line + 20, end))
    if start is not None:
        rows, last = _parse_rows(text, start + 3, wall_s)
    elif (first := _find_means(text, line)) is not None:
        rows, last = _parse_means(text, first, wall_s)
    else:
        return None
    if not rows or rows[-1].name != "Other":
        raise text.make_error(last, "the breakdown ends before its last row")
    cpu = text.find_match(_CPU, line, start)
    asked = int(cpu[3]) if cpu else 1
    used = text.parse_number(cpu[1], line) if cpu else 100.0
    counts = {str(found[5]): float(found[4]), "steps": float(found[3])} if found[5] else {}
    return TimingTable(
        tool=tool,
        program=_PROGRAMS[tool],
        wall_s=wall_s,
        rows=tuple(rows),
        ranks=int(found[2]) // asked,
        threads=asked if used > _ONE_THREAD else 1,
        hides_waiting=tool == "SPARTA",  # what ranks wait for each other is in its row Other
        language="cxx",
        parameters=counts,
        notes=_describe_load(used, asked, 100 * sum(row.mean_s for row in rows if row.role == Role.IO) / wall_s),
    )


def _find_means(text: PlainText, loop: int) -> int | None:
    """Return the line of the first row of means behind the line ``loop``, None where there is none."""
    first = loop + 2 if loop + 1 < len(text.lines) and not text.lines[loop + 1].strip() else loop + 1
    return first if first < len(text.lines) and _MEAN.match(text.lines[first]) else None


def _parse_means(text: PlainText, first: int, wall_s: float) -> tuple[list[TimingRow], int]:
    """Return the rows from the line ``first`` on that are means alone, and the index of the last one."""
    rows: list[TimingRow] = []
    for line in range(first, len(text.lines)):
        cells = _MEAN.match(text.lines[line])
        if cells is None:
            break
        mean = text.parse_number(cells[2], line)
        _check_share(text, line, mean, text.parse_number(cells[3], line), wall_s)
        rows.append(TimingRow(cells[1], mean, role=_ROLES.get(cells[1], Role.USER)))
    return rows, first + len(rows) - 1


def _parse_rows(text: PlainText, start: int, wall_s: float) -> tuple[list[TimingRow], int]:
    """Return the rows between the rule and the empty line, and the index of that line."""
    rows: list[TimingRow] = []
    for line in range(start, len(text.lines)):
        cells = [cell.strip() for cell in text.lines[line].split("|")]
        if len(cells) not in (6, 7):  # 'timer full' prints a column more
            return rows, line
        least, mean, most = (text.parse_number(cell, line) if cell else float("nan") for cell in cells[1:4])
        percent = text.parse_number(cells[-1], line)
        _check_share(text, line, mean, percent, wall_s)
        rows.append(TimingRow(cells[0], mean, least, most, role=_ROLES.get(cells[0], Role.USER)))
        if cells[0] == "Other":
            return rows, line
    raise text.make_error(len(text.lines) - 1, "the breakdown ends before its last row")


def _check_share(text: PlainText, line: int, mean: float, percent: float, wall_s: float) -> None:
    if abs(percent / 100 * wall_s - mean) > 0.0051 / 100 * wall_s + 1e-3 * mean:
        raise text.make_error(line, f"{mean:g} s are not {percent:g} % of the loop time")


def _describe_load(percent: float, threads: int, writing: float) -> tuple[Note, ...]:
    """Return the note that tasks, or the threads of each, had no core for part of the time.

    A task needs none while it waits for files, which it does for at most ``writing`` per cent of the time.
    """
    if percent >= _OVERLOADED * threads or (threads == 1 and percent + writing >= _OVERLOADED):
        return ()
    if threads > 1 and _OVERLOADED <= percent <= _ONE_THREAD:
        text = f"each task was given {threads} threads, and its styles used one"
        return (Note("threads not used", text, 0.0, "lmp -sf omp -pk omp THREADS, or OMP_NUM_THREADS=1"),)
    if threads > 1 and percent >= _OVERLOADED:
        running = f"{percent / 100:.3g} of the {threads} threads of each task ran in the mean"
        text = f"{running}: the others waited, or had no core"
        return (Note("threads idle", text, 0.1, "OMP_NUM_THREADS=… with fewer, and compare the loop times"),)
    text = f"the tasks had a core for {percent:g} % of the time only: they shared cores, or slept"
    return (Note(SHARED_CORES, text, 0.3, "run with at most as many tasks as cores, each on its own"),)
