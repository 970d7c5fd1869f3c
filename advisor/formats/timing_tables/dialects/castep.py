"""CASTEP: its times and its parallel efficiency, at the end of ``SEED.castep``, of the first process.

CASTEP appends to the file when it is run again: the last run is shown. The parallel efficiency is the share of the
calculation that is not communication (``trace.F90``, ``comms.F90``), in whole per cents.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TIME: Final = re.compile(r"(Initialisation|Calculation|Finalisation|Total) +time += +(\d+\.\d+) s *$")
_PARTS: Final = ("Initialisation", "Calculation", "Finalisation", "Total")
_RANKS: Final = re.compile(r" *Calculation (?:parallelised over +(\d{1,9}) +processes|not parallelised)\.")
_THREADS: Final = re.compile(r" *(?:Each process may use|with) up to +(\d{1,9}) +threads")
_EFFICIENCY: Final = re.compile(r"Overall parallel efficiency rating: +[\w ]+\((\d{1,3})%\)")
_DISTRIBUTION: Final = re.compile(r" *Data is distributed by ")
_WAYS: Final = re.compile(r"([\w-]+) ?\((\d{1,9})-way\)")
#: What CASTEP says of a run of less than ten minutes, in its notes on the parallel efficiency.
_SHORT: Final = re.compile(r"\d+\) Calculation only took +(\d+\.\d+) s,")
_STARTED: Final = re.compile(r" *Run started: +\w{3}, +(\d{1,2}) (\w{3}) (\d{4}) (\d\d:\d\d:\d\d)")
_ROUNDING_S: Final = 0.021
_CUT: Final = Note("the log ends early", "the output ends before the parallel efficiency", 0.2)


def parse(text: PlainText) -> TimingTable:
    """Return the parts of the last run; raises ``InputError`` where they are damaged, or it did not reach its end."""
    times = list(text.find_matches(_TIME))[-len(_PARTS) :]
    if [found[1] for _, found in times] != list(_PARTS):
        raise InputError(text.path, "the output ends before the times of the run: it did not get there")
    *parts, wall_s = (text.parse_number(found[2], line) for line, found in times)
    if abs(sum(parts) - wall_s) > _ROUNDING_S:
        raise text.make_error(times[-1][0], f"the parts add up to {sum(parts):.2f} s, not to {wall_s:.2f} s")
    line = times[0][0]
    for place, found in text.find_matches(_SHORT, line):
        if not 0.9 * parts[1] <= text.parse_number(found[1], place) <= 1.1 * wall_s:
            raise text.make_error(place, f"the calculation took {parts[1]:g} s of {wall_s:g} s")
    stated = list(text.find_matches(_RANKS, 0, line))
    if not stated:
        raise InputError(text.path, "the output does not tell how many processes there were")
    ranks = int(stated[-1][1][1] or 1)
    threads = list(text.find_matches(_THREADS, stated[-1][0], line))
    started = list(text.find_matches(_STARTED, 0, line))
    return TimingTable(
        tool="CASTEP", program="castep", wall_s=wall_s, ranks=ranks,
        rows=tuple(
            TimingRow(name.lower(), seconds, role=Role.USER, calls=1)
            for name, seconds in zip(_PARTS, parts, strict=False) if seconds > 0
        ),
        threads=int(threads[-1][1][1]) if threads else 1,
        hides_waiting=True, first_rank=True, language="fortran",
        communication_s=_find_communication(text, line, parts[1]) if ranks > 1 else math.nan,
        started=" ".join(started[-1][1].group(1, 2, 3)).replace(" ", "") + f" {started[-1][1][4]}" if started else None,
        parameters=_find_distribution(text, stated[-1][0], line),
        notes=() if ranks == 1 or text.find_line(_EFFICIENCY, line) is not None else (_CUT,),
    )  # fmt: skip


def _find_distribution(text: PlainText, start: int, stop: int) -> dict[str, float]:
    """Return over how many groups of processes CASTEP spreads what."""
    lines = [text.lines[line] for line in text.find_lines(_DISTRIBUTION, start, stop)]
    return {f"{what} groups": float(ways) for what, ways in _WAYS.findall(lines[-1])} if lines else {}


def _find_communication(text: PlainText, start: int, calculation_s: float) -> float:
    """Return the seconds of the calculation that are communication, NaN where CASTEP does not rate it."""
    rated = next(iter(text.find_matches(_EFFICIENCY, start)), None)
    if rated is None:
        return math.nan
    line, found = rated
    percent = text.parse_number(found[1], line)
    if percent > 100:
        raise text.make_error(line, f"an efficiency of {percent:g} %")
    return (1 - percent / 100) * calculation_s
