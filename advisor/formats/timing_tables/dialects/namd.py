"""NAMD: its log, with the loads that its balancer measures (``LdbCoordinator.C``, ``Controller.C``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_RANKS: Final = re.compile(r"Info: Running on (\d{1,9}) processors")
_STARTUP: Final = re.compile(r"Info: Finished startup at ([\d.]+) s,")
_STEPS: Final = re.compile(r"TIMING: (\d{1,18}) +CPU: ([\d.]+), [\d.e+-]+/step +Wall: ([\d.]+), ([\d.e+-]+)/step")
#: What ends a step of the balancer.
_BALANCED: Final = re.compile(r"LDB: =+ (?:END OF LOAD BALANCING|DONE WITH MIGRATION) =+ ([\d.]+)")
#: Every PE's load between two steps of the balancer, before it moves anything.
_LOAD: Final = re.compile(r"LDB: TIME ([\d.]+) LOAD: AVG ([\d.]+) MAX ([\d.]+) .* None(?: MEM|\s*$)")
_WALL: Final = re.compile(r"WallClock: ([\d.]+) +CPUTime: ([\d.]+) +Memory: [\d.]+ MB")
_ROUNDING_S: Final = 0.01
_OFF: Final = 1.02


def parse(text: PlainText) -> TimingTable:
    """Return startup and steps, and how long PEs idled; raises ``InputError`` where the log ends early."""
    last = text.find_match(_WALL)
    found = text.find_match(_RANKS)
    if last is None or found is None:
        raise InputError(text.path, "the log ends before the wall time of the run")
    ranks, wall_s, cpu_s = int(found[1]), float(last[1]), float(last[2])
    startup = text.find_match(_STARTUP)
    rows = [TimingRow("startup", float(startup[1]), calls=1)] if startup else []
    rest_s = wall_s - sum(row.mean_s for row in rows)
    if rest_s < -_ROUNDING_S:
        raise InputError(text.path, f"the parts of the run take {wall_s - rest_s:g} s, the run {wall_s:g} s")
    _check_steps(text, wall_s)
    off_s = wall_s - cpu_s if ranks == 1 and wall_s - cpu_s > _ROUNDING_S else 0.0
    rows.append(TimingRow("steps", max(rest_s - off_s, 0.0), role=Role.USER, calls=1))
    if off_s:
        rows.append(TimingRow(NOT_ON_CORE, off_s, role=Role.OS, calls=1))
    return TimingTable(
        tool="NAMD", program="namd", wall_s=wall_s, rows=tuple(rows), ranks=ranks, hides_waiting=True, language="cxx",
        communication_s=_sum_idle(text, ranks) if ranks > 1 else float("nan"),
    )  # fmt: skip


def _sum_idle(text: PlainText, ranks: int) -> float:
    """Return the mean seconds that PEs idled where the balancer measured their loads, NaN where it did not."""
    idle, ended, found = 0.0, float("nan"), False
    for line, words in enumerate(text.lines):
        load, end = _LOAD.match(words), _BALANCED.match(words)
        if end:
            ended = text.parse_number(end[1], line)
        if load is None:
            continue
        until, mean, most = (text.parse_number(load[n], line) for n in (1, 2, 3))
        if not mean <= most <= ranks * mean:
            raise text.make_error(line, "the mean load and the most contradict each other")
        if until - ended >= mean:
            idle, found = idle + until - ended - mean, True
    return idle if found else float("nan")


def _check_steps(text: PlainText, wall_s: float) -> None:
    """Raise ``InputError`` for times of steps that go backwards, or beyond the end of the run."""
    before = 0.0
    for line, cells in text.find_matches(_STEPS):
        now = text.parse_number(cells[3], line)
        if now < before or now > wall_s * _OFF + _ROUNDING_S:
            raise text.make_error(line, "the wall time goes backwards, or beyond the end of the run")
        before = now
