"""OpenFOAM: the log of a solver, CPU and wall time of the first rank after each step.

``ExecutionTime`` is the CPU time of the first process (``Time::elapsedCpuTime``), ``ClockTime`` the wall time in whole
seconds. What steps do is not in the log: ``profiling`` in ``system/controlDict`` tells (``openfoam_profiling.py``).
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.model.units import format_seconds
from advisor.support.stated_commands import state_command
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_NUMBER: Final = r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_STEP: Final = re.compile(rf"(?:.* )?ExecutionTime = {_NUMBER} s  ClockTime = {_NUMBER} s")
_EXEC: Final = re.compile(r"Exec   : (\S+)(.*)")
_RANKS: Final = re.compile(r"nProcs : (\d{1,9})$")
_DATE: Final = re.compile(r"Date   : (\w{3}) (\d\d) (\d{4})$")
_TIME: Final = re.compile(r"Time   : (\d\d:\d\d:\d\d)$")
_END: Final = re.compile(r"(End|Finalising parallel run)\s*$")
#: What the wall clock, in whole seconds, may hide.
_CLOCK_S: Final = 1.0
#: A step that takes so many times the median one does something that the others do not.
_LONG: Final = 2.0
_ENOUGH: Final = 5
_HINT: Final = "profiling { active true; } in system/controlDict"


class _Step(NamedTuple):
    """What the log states after a step: seconds since the start."""

    cpu_s: float
    wall_s: float


def parse(text: PlainText) -> TimingTable:
    """Return what the log tells of its run; raises ``InputError`` with the line where times run backwards."""
    first_line = text.find_match(_EXEC)
    program = PurePosixPath(first_line[1]).name if first_line else ""  # some installations print the whole path
    steps = _read_steps(text)
    cpu_s, clock_s = steps[-1]
    # the clock is cut to whole seconds: where CPU time is as near to it as that, it is the better one
    wall_s = cpu_s if clock_s - 1.0 <= cpu_s < clock_s + 1.5 else clock_s
    found = text.find_match(_RANKS)
    ranks = int(found[1]) if found else 1
    ended = any(True for _ in text.find_lines(_END, max(len(text.lines) - 40, 0)))
    date, clock = text.find_match(_DATE), text.find_match(_TIME)
    return TimingTable(
        tool="OpenFOAM",
        program=program,
        wall_s=wall_s,
        rows=tuple(_build_rows(steps, wall_s)),
        ranks=ranks,
        hides_waiting=True,
        first_rank=True,
        cpu_s=min(steps[-1].cpu_s + _CLOCK_S, wall_s),
        language="cxx",
        started=f"Mon {date[1]} {date[2]} {clock[1]} {date[3]}" if date and clock else None,
        parameters=state_command(f"{program}{first_line[2]}", ranks) if first_line else {},
        notes=tuple(_describe_run(steps, ranks, ended)),
    )


def _read_steps(text: PlainText) -> list[_Step]:
    steps: list[_Step] = []
    for line, found in text.find_matches(_STEP):
        step = _Step(text.parse_number(found[1], line), text.parse_number(found[2], line))
        if steps and (step.cpu_s < steps[-1].cpu_s or step.wall_s < steps[-1].wall_s):
            raise text.make_error(line, "time runs backwards: the log holds several runs, or is damaged")
        steps.append(step)
    if not steps:
        raise InputError(text.path, "the log holds no step with ExecutionTime and ClockTime")
    return steps


def _build_rows(steps: list[_Step], wall_s: float) -> Iterator[TimingRow]:
    """Yield start-up, as far as the first step is longer than the others, and the steps with what is not CPU time."""
    start_s = _find_start(steps)
    if start_s > 0:
        yield TimingRow("start-up", min(start_s, wall_s), role=Role.INIT, calls=1)
    yield TimingRow("time steps", max(wall_s - start_s, 0.0), role=Role.USER, calls=len(steps))
    idle_s = steps[-1].wall_s - steps[-1].cpu_s
    if idle_s > 1:  # less is what cutting to whole seconds makes
        yield TimingRow(
            NOT_ON_CORE, min(idle_s, max(wall_s - start_s, 0.0)), parent=int(start_s > 0), role=Role.OS, calls=1
        )


def _find_start(steps: list[_Step]) -> float:
    """Return the CPU seconds by which the first step exceeds the median one: reading the mesh and the fields."""
    if len(steps) < _ENOUGH:
        return 0.0
    lengths = [after.cpu_s - before.cpu_s for before, after in itertools.pairwise(steps)]
    return max(steps[0].cpu_s - statistics.median(lengths), 0.0)


def _describe_run(steps: list[_Step], ranks: int, ended: bool) -> Iterator[Note]:
    if not ended:
        yield Note("log cut off", "the log does not reach its end: the run was stopped, or still runs", 0.1)
    if ranks > 1:
        yield Note("one rank of many", f"the log tells of the first of {ranks} ranks alone", 0.0, _HINT)
    lengths = [after.cpu_s - before.cpu_s for before, after in itertools.pairwise(steps)]
    median = statistics.median(lengths) if len(lengths) >= _ENOUGH else 0.0
    long = [length for length in lengths if median > 0 and length > _LONG * median]
    if long:
        text = (
            f"{len(long)} of {len(lengths)} steps take more than twice the median ({format_seconds(median)}), "
            f"together {format_seconds(sum(long) - median * len(long))} more: look at what they write"
        )
        yield Note("steps of different length", text)
