"""Linaro (Arm, Allinea) Performance Reports: the text that ``perf-report`` writes, shares of the run as means.

``perf-report FILE.map`` makes the same text of a recording of MAP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.formats.timing_tables.table import TimingRow, TimingTable
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_SUMMARY: Final = re.compile(r"Summary: (.{1,500}?) is \S+-bound in this configuration")
_SHARE: Final = re.compile(r"([A-Z][\w/,() -]*?): +(\d+(?:\.\d+)?)%(?: +\((\d+(?:\.\d+)?)s\))?")
_SECTION: Final = re.compile(r"(CPU|CPU Metrics|MPI|I/O|OpenMP|Threads|Memory|Energy|Accelerators):$")
_BREAKDOWN: Final = re.compile(
    r"A breakdown of the (\d+(?:\.\d+)?)%(?: \(\d+(?:\.\d+)?s\))? (?:total )?(CPU|MPI|I/O) time"
)
_TOTAL: Final = re.compile(r"Total time: +(\d+(?:\.\d+)?) seconds?")
_TASKS: Final = re.compile(r"Tasks: +(\d{1,9}) process(?:es)?(?:, OMP_NUM_THREADS was (\d{1,6}))?")
_STARTED: Final = re.compile(r"Start time: +(\w{3} \w{3} +\d{1,2}) (\d{4}) (\d\d:\d\d:\d\d)")
_MAIN: Final = {"Compute": Role.USER, "MPI": Role.COMM_OTHER, "I/O": Role.IO}
_SECTIONS: Final = {"CPU": "Compute"}
#: How the parts of a section begin that add up to it.
_PART: Final = "Time in "
_SAMPLED: Final = Note("sampled shares", "shares of the run come from samples, and its time is stated in whole seconds")


class _Share(NamedTuple):
    """The share of the run that a part takes, its seconds if they are stated, and the line."""

    share: float
    seconds: float | None
    line: int


def parse(text: PlainText) -> TimingTable:
    """Return the shares of the run in seconds; raises ``InputError`` where the report is damaged or cut off."""
    start = text.find_line(_SUMMARY)
    found = None if start is None else _SUMMARY.match(text.lines[start])
    if start is None or found is None:
        raise InputError(text.path, "holds no summary of Performance Reports")
    total, tasks = (text.find_line(pattern, 0, start) for pattern in (_TOTAL, _TASKS))
    if total is None or tasks is None:
        raise text.make_error(start, "the lines before the summary that state time and processes are missing")
    stated = _TOTAL.match(text.lines[total])
    wall_s = text.parse_number(stated[1] if stated else "", total)
    shares = _read_summary(text, start)
    rows = _build_rows(text, start, shares, wall_s)
    processes = _TASKS.match(text.lines[tasks])
    clock = text.find_match(_STARTED, 0, start)
    return TimingTable(
        tool="Performance Reports",
        program=found[1],
        wall_s=max(wall_s, sum(row.mean_s for row in rows if row.parent < 0)),
        rows=tuple(rows),
        ranks=int(processes[1]) if processes else 1,
        threads=int(processes[2] or 1) if processes else 1,
        averages_ranks=True,
        started=f"{clock[1]} {clock[3]} {clock[2]}" if clock else None,
        notes=(_SAMPLED, *_check_sections(text, start, shares)),
    )


def _read_summary(text: PlainText, start: int) -> dict[str, _Share]:
    """Return share, seconds if stated, and line of computation, MPI and I/O; raises ``InputError`` for others."""
    found: dict[str, _Share] = {}
    for line in range(start + 1, min(start + 8, len(text.lines))):
        cells = _SHARE.match(text.lines[line])
        if cells and cells[1] in _MAIN and cells[1] not in found:
            seconds = text.parse_number(cells[3], line) if cells[3] else None
            found[cells[1]] = _Share(text.parse_number(cells[2], line) / 100, seconds, line)
    together = sum(share.share for share in found.values())
    if set(found) != set(_MAIN) or not 0.97 <= together <= 1.03:
        raise text.make_error(start, "computation, MPI and I/O do not make up the run: the report is damaged")
    return found


def _build_rows(text: PlainText, start: int, shares: dict[str, _Share], wall_s: float) -> list[TimingRow]:
    """Return the parts of the run; MPI and I/O in parts of their own where the report divides them."""
    stated = [share.seconds for share in shares.values()]
    covered_s = sum(seconds for seconds in stated if seconds is not None) if None not in stated else wall_s
    rows = []
    for name, share in shares.items():
        mean_s = share.share * min(covered_s, wall_s)
        parts = {words: part for words, part in _read_parts(text, start, name).items() if part > 0}
        if not 0.97 <= sum(parts.values()) <= 1.03:
            parts = {}
        whole = sum(parts.values())
        rows += [
            TimingRow(f"{name}: {words}", part / whole * mean_s, role=_MAIN[name]) for words, part in parts.items()
        ]
        rows += [] if parts else [TimingRow(name, mean_s, role=_MAIN[name])]
    return rows


def _read_parts(text: PlainText, start: int, name: str) -> dict[str, float]:
    """Return what the section of MPI or I/O divides its time into, as shares of it."""
    found: dict[str, float] = {}
    section = ""
    for line in range(start + 1, len(text.lines)):
        heading, cells = _SECTION.match(text.lines[line]), _SHARE.match(text.lines[line])
        section = heading[1] if heading else section
        if cells and section == name and cells[1].startswith(_PART):
            found[cells[1].removeprefix(_PART)] = text.parse_number(cells[2], line) / 100
    return found


def _check_sections(text: PlainText, start: int, shares: dict[str, _Share]) -> Iterator[Note]:
    """Yield a note where the section of a part of the run is missing; raises ``InputError`` where it contradicts."""
    told = {}
    for line, again in text.find_matches(_BREAKDOWN, start):
        name = _SECTIONS.get(again[2], again[2])
        share = text.parse_number(again[1], line) / 100
        if abs(share - shares[name].share) > 1e-3:
            raise text.make_error(line, f"the share of {name} is not that of the summary")
        told[name] = share
    missing = [name for name, share in shares.items() if share.share > 0 and name not in told]
    divided = [name for name in told if name != "Compute" and shares[name].share > 0]
    cut = [name for name in divided if not 0.97 <= sum(_read_parts(text, start, name).values()) <= 1.03]
    if missing or cut:
        yield Note("report cut off", f"the section of {(missing or cut)[0]} is missing or not whole", 0.1)
