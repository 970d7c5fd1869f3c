"""MITgcm: user, system and wall time of its sections at the end of ``STDOUT.0000`` (``timers.F``), of one process."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.timing_tables.table import NOT_ON_CORE, TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_LINE: Final = r"\(PID\.TID (?P<rank>\d{4,9})\.\d{4}\)\s+"
_SECTION: Final = re.compile(
    _LINE + r'Seconds in section "(?P<name>[^"\[]{1,80}?)\s*\[(?P<parent>[^"\]]{1,80}?)\s*\]":\s*$'
)
_FIELDS: Final = ("User time", "System time", "Wall clock time", "No. starts", "No. stops")
_FIELD: Final = re.compile(_LINE + rf"(?P<name>{'|'.join(map(re.escape, _FIELDS))}):\s+(?P<value>\S+)\s*$")
#: What is printed behind the last section.
_END: Final = re.compile(_LINE + r"// Tile <-> Tile communication statistics")
_RANKS: Final = re.compile(_LINE + r"nProcs =\s*(?P<count>\d{1,9}) ;")
_THREADS: Final = re.compile(_LINE + r"nThreads =\s*(?P<count>\d{1,9}) ;")
_PROGRAM: Final = "THE_MODEL_MAIN"
_WHOLE: Final = "ALL"
#: Fortran prints a small number without its E.
_NO_E: Final = re.compile(r"(\d)([-+]\d{3})$")
_SLACK: Final = 1.02
_SLACK_S: Final = 0.02


class _Section(NamedTuple):
    """A section with everything below it, seconds, and the name of what it is part of."""

    name: str
    parent: str
    cpu_s: float
    wall_s: float
    calls: float


def parse(text: PlainText) -> TimingTable:
    """Return the sections of the run; raises ``InputError`` where they are damaged, or the run did not get there."""
    sections = [_parse_section(text, line, cells) for line, cells in text.find_matches(_SECTION)]
    if not sections or sections[0].name != _WHOLE or text.find_line(_END) is None:
        raise InputError(text.path, "the output ends before the times of all sections: the run did not get there")
    ranks, threads = (text.find_match(pattern) for pattern in (_RANKS, _THREADS))
    count, team = (int(found["count"]) if found else 1 for found in (ranks, threads))
    whole = sections[0]
    rows, left = _nest_sections(sections, alone=count == team == 1)
    text_of_left = f"sections that take longer than what contains them are called elsewhere too: {', '.join(left[:3])}"
    return TimingTable(
        tool="MITgcm", program="mitgcmuv", wall_s=whole.wall_s, rows=tuple(rows), ranks=count, threads=team,
        hides_waiting=True, first_rank=count > 1, cpu_s=whole.cpu_s if team == 1 else math.nan, language="fortran",
        notes=(Note("sections left out", text_of_left),) if left else (),
    )  # fmt: skip


def _parse_section(text: PlainText, start: int, cells: re.Match[str]) -> _Section:
    values: dict[str, float] = {}
    for name, line in zip(_FIELDS, range(start + 1, len(text.lines)), strict=False):
        found = _FIELD.match(text.lines[line])
        if found is None or found["name"] != name:
            raise text.make_error(line, f"expected {name!r} of the section {cells['name']!r}")
        values[name] = text.parse_number(_NO_E.sub(r"\1E\2", found["value"]), line)
    if len(values) < len(_FIELDS) or values["No. starts"] != values["No. stops"]:
        raise text.make_error(start, f"the section {cells['name']!r} has no end")
    cpu_s, wall_s = values["User time"] + values["System time"], values["Wall clock time"]
    return _Section(cells["name"], cells["parent"], cpu_s, wall_s, values["No. starts"])


def _nest_sections(sections: Sequence[_Section], *, alone: bool) -> tuple[list[TimingRow], list[str]]:
    """Return the sections below those that contain them, each behind it, and the names of those that do not fit.

    Some names in brackets are spelt differently from those of their sections: these contain what is listed behind them.
    Of a process that runs ``alone`` what a section itself had no core for is a row below it.
    """
    numbers = {section.name: number for number, section in enumerate(sections)}
    children: dict[int, list[int]] = {}
    aliases: dict[str, int] = {}
    for number, section in enumerate(sections[1:], start=1):
        parent = numbers.get(section.parent)
        if parent is None and section.parent != _PROGRAM:
            parent = aliases.setdefault(section.parent, number - 1)
        children.setdefault(parent or 0, []).append(number)
    rows: list[TimingRow] = []
    left: list[str] = []
    reached: set[int] = {0}

    def add_below(above: int, row: int) -> None:
        room, off_s = sections[above].wall_s, sections[above].wall_s - sections[above].cpu_s
        for number in children.get(above, ()):
            section = sections[number]
            if number in reached or section.wall_s > _SLACK * room + _SLACK_S:
                left.append(section.name)
                continue
            reached.add(number)
            room, off_s = room - section.wall_s, off_s - max(section.wall_s - section.cpu_s, 0.0)
            rows.append(TimingRow(section.name, section.wall_s, calls=section.calls, parent=row))
            add_below(number, len(rows) - 1)
        if alone and min(room, off_s) > _SLACK_S:
            rows.append(TimingRow(NOT_ON_CORE, min(room, off_s), role=Role.OS, calls=1, parent=row))

    add_below(0, -1)
    return rows, left
