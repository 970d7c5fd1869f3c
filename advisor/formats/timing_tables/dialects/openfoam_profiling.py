"""OpenFOAM: the dictionary ``uniform/profiling`` of a time folder, nested regions of one process.

``profiling { active true; }`` in ``system/controlDict`` makes releases of openfoam.com write it
(``profilingInformation.C``); in a parallel run each ``processorN`` holds one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_BEGIN: Final = re.compile(r"profiling$")
_TRIGGER: Final = re.compile(r"    trigger(\d{1,9})$")
_ENTRY: Final = re.compile(r"        (id|parentId|calls|totalTime|childTime) +(\S+);$")
_NAME: Final = re.compile(r'        description +"?(.*?)"?;$')
_CLOSED: Final = re.compile(r"    \}$")
_END: Final = re.compile(r"\}$")
_PROCESS: Final = re.compile(r"processor\d+$")
_MAIN: Final = 0
_DIGITS: Final = 1e-3


def parse(text: PlainText) -> TimingTable:
    """Return the regions of the process; raises ``InputError`` with the line of what is damaged."""
    start = text.find_line(_BEGIN)
    if start is None:
        raise InputError(text.path, "holds no profiling of OpenFOAM")
    triggers = _read_triggers(text, start)
    if _MAIN not in triggers:
        raise text.make_error(start, "the region of the whole program (trigger0) is missing")
    order = _sort_by_parent(text, start, triggers)
    places = {number: place - 1 for place, number in enumerate(order)}
    rows = tuple(
        TimingRow(
            str(triggers[number]["description"]),
            float(triggers[number]["totalTime"]),
            parent=places[int(triggers[number].get("parentId", _MAIN))],
            calls=float(triggers[number]["calls"]),
        )
        for number in order[1:]
    )
    below = any(_PROCESS.match(part) for part in text.path.absolute().parts)
    note = Note("one rank of many", "the profiling of one process; the others are in folders beside it", 0.2)
    return TimingTable(
        tool="OpenFOAM",
        program="",
        wall_s=float(triggers[_MAIN]["totalTime"]),
        rows=rows,
        hides_waiting=True,
        language="cxx",
        notes=(note,) if below else (),
    )


def _read_triggers(text: PlainText, start: int) -> dict[int, dict[str, str | float]]:
    """Return the entries of the regions by their number."""
    found: dict[int, dict[str, str | float]] = {}
    entries: dict[str, str | float] | None = None
    for line in range(start + 1, len(text.lines)):
        content = text.lines[line]
        entry, name = _ENTRY.match(content), _NAME.match(content)
        if _TRIGGER.match(content):
            entries = {}
        elif entries is not None and entry:
            entries[entry[1]] = text.parse_number(entry[2], line)
        elif entries is not None and name:
            entries["description"] = name[1]
        elif entries is not None and _CLOSED.match(content):
            _check_entries(text, line, entries)
            found[int(float(entries["id"]))] = entries
            entries = None
        elif entries is None and _END.match(content):
            return found
    raise text.make_error(len(text.lines) - 1, "the dictionary ends before its closing brace")


def _check_entries(text: PlainText, line: int, entries: dict[str, str | float]) -> None:
    missing = {"id", "description", "calls", "totalTime", "childTime"} - entries.keys()
    if missing:
        raise text.make_error(line, f"the region lacks {min(missing)}")
    total, inside = float(entries["totalTime"]), float(entries["childTime"])
    if inside > total * (1 + _DIGITS) + _DIGITS:
        raise text.make_error(line, "what the region contains takes longer than itself")


def _sort_by_parent(text: PlainText, start: int, triggers: dict[int, dict[str, str | float]]) -> list[int]:
    """Return the numbers of the regions, parents before what they contain; raises ``InputError`` for loops."""
    order, waiting = [_MAIN], [number for number in sorted(triggers) if number != _MAIN]
    while waiting:
        ready = [number for number in waiting if int(float(triggers[number].get("parentId", _MAIN))) in order]
        if not ready:
            raise text.make_error(start, f"the region that trigger{waiting[0]} is in is missing")
        order += ready
        waiting = [number for number in waiting if number not in ready]
    return order
