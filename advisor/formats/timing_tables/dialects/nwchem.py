"""NWChem: CPU and wall time of each task and of the whole run, of the first process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_TIMES: Final = re.compile(r" *(Task|Total) +times +cpu: +(\d+(?:\.\d+)?)s +wall: +(\d+(?:\.\d+)?)s *$")
_MODULE: Final = re.compile(r" {10,}(NWChem (?!Input Module)[A-Z].{1,80}?) *$")
_RANKS: Final = re.compile(r" *nproc +=  *(\d{1,9}) *$")
_DATE: Final = re.compile(r" *date +=  *(\w{3} \w{3} +\d{1,2} \d\d:\d\d:\d\d \d{4}) *$")
_PROGRAM: Final = re.compile(r" *program +=  *(\S+) *$")
_REMOTE: Final = re.compile(r" *bytes remote: +(\S.*)$")
#: Seconds are printed to a tenth.
_DIGITS_S: Final = 0.11


def parse(text: PlainText) -> TimingTable:
    """Return the tasks of the run; raises ``InputError`` where the output does not reach its end."""
    rows: list[TimingRow] = []
    name, cpu_s, wall_s = "", 0.0, None
    ranks = int(_find_text(text, _RANKS) or 1)
    for line, content in enumerate(text.lines):
        module, times = _MODULE.match(content), _TIMES.match(content)
        if module and not name:
            name = module[1]
        elif times:
            cpu, wall = text.parse_number(times[2], line), text.parse_number(times[3], line)
            if times[1] == "Total":
                cpu_s, wall_s = cpu, wall
                continue
            rows.append(TimingRow(name or "task", wall, role=Role.USER, calls=1))
            if ranks == 1 and wall - cpu > _DIGITS_S:
                rows.append(TimingRow(NOT_ON_CORE, wall - cpu, parent=len(rows) - 1, role=Role.OS, calls=1))
            name = ""
    if wall_s is None:
        raise InputError(text.path, "the output ends before the total times: the run did not get there")
    tasks_s = sum(row.mean_s for row in rows if row.parent < 0)
    if tasks_s > wall_s + _DIGITS_S * (len(rows) + 1):
        raise InputError(text.path, f"the tasks take {tasks_s:.1f} s, the whole run {wall_s:.1f} s")
    return TimingTable(
        tool="NWChem",
        program=(_find_text(text, _PROGRAM) or "nwchem").rsplit("/", 1)[-1],
        wall_s=wall_s,
        rows=tuple(rows) or (TimingRow("reading the input", wall_s, calls=1),),
        ranks=ranks,
        hides_waiting=True,
        first_rank=True,
        cpu_s=cpu_s,
        language="fortran",
        started=_find_text(text, _DATE),
        notes=() if ranks == 1 else (_describe_first(text, ranks, cpu_s, wall_s),),
    )


def _find_text(text: PlainText, pattern: re.Pattern[str]) -> str | None:
    found = text.find_match(pattern)
    return found[1] if found else None


def _describe_first(text: PlainText, ranks: int, cpu_s: float, wall_s: float) -> Note:
    """Return what is known of the first process: its CPU time, and what it moved to and from others."""
    words = f"the times are those of the first of {ranks} processes: {cpu_s:.1f} s of {wall_s:.1f} s on a core"
    remote = (_find_text(text, _REMOTE) or "").split()
    try:
        moved = sum(float(cell) for cell in remote)
    except ValueError:
        moved = 0.0
    return Note("one rank of many", f"{words}; it moved {moved:.3g} bytes by Global Arrays" if moved > 0 else words)
