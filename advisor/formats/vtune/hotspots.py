"""``vtune -report hotspots -format csv``: CPU time of functions, of threads where the report is grouped by them.

``-report top-down`` lists functions below their callers; their own time is added up wherever they stand.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.vtune.report_kinds import split_rows
from advisor.model.errors import InputError
from advisor.model.records import Note, Processor
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    from advisor.formats.plain_text import PlainText

_CELL: Final = re.compile(r"([\d.]+(?:e[+-]?\d+)?)s?$")
_UNKNOWN: Final = frozenset({"[Unknown]", "[unknown source file]", "", "N/A"})
_MOST_CELLS: Final = 20_000_000
_CPU_ONLY: Final = Note(
    "CPU time only",
    "the table holds CPU time alone: waiting and the time of the run are in the summary of VTune",
    0.0,
    "vtune -report summary -result-dir RESULT -format csv -csv-delimiter comma > summary.csv",
)
_TOGETHER: Final = Note("threads not told apart", "the table adds the threads up: they are one column", 0.1,
                        "vtune -report hotspots -group-by thread,function -format csv")  # fmt: skip


def read_hotspots(text: PlainText) -> CallPaths:
    """Return the functions of the table; raises ``InputError`` with the line of what is damaged."""
    start = next((number for number, line in enumerate(text.lines) if line.strip()), 0)
    head = text.lines[start].lstrip("\ufeff")
    delimiter = next((sign for sign in "\t,;|" if sign in head), ",")
    columns = {name.strip(" \ufeff"): place for place, name in enumerate(next(split_rows(text, start, delimiter)))}
    spent = next((name for name in ("CPU Time:Effective Time", "CPU Time:Effective Time:Self", "CPU Time:Self",
                                    "CPU Time") if name in columns), None)  # fmt: skip
    named = next((name for name in ("Function", "Function Stack") if name in columns), None)
    if named is None or spent is None:
        raise text.make_error(start, "the table has no columns Function and CPU Time")
    threads: dict[str, int] = {}
    cells: dict[tuple[str, str, str], dict[int, float]] = {}
    for number, row in enumerate(split_rows(text, start + 1, delimiter), start=start + 1):
        if not any(cell.strip() for cell in row):
            continue
        row = _join_names(row, columns)
        if len(row) != len(columns):
            raise text.make_error(number, f"{len(row)} cells in a table of {len(columns)} columns")
        key = (row[columns[named]].strip(), _find(row, columns, "Module"), _find(row, columns, "Source File"))
        thread = threads.setdefault(_find(row, columns, "Thread"), len(threads))
        at = cells.setdefault(key, {})
        at[thread] = at.get(thread, 0.0) + _parse_seconds(text, row[columns[spent]], number)
    return _build_call_paths(text, cells, max(len(threads), 1), by_thread="Thread" in columns)


def _join_names(row: list[str], columns: dict[str, int]) -> list[str]:
    """Return the row with commas inside names of functions, which VTune does not quote: times tell where these end."""
    excess = len(row) - len(columns)
    times = [place for name, place in columns.items() if name.startswith("CPU Time")]
    if excess <= 0 or not times or 0 not in (columns.get("Function"), columns.get("Function Stack")):
        return row
    for inside in range(excess + 1):
        joined = [", ".join(row[: inside + 1]), *row[inside + 1 :]]
        if all(_CELL.match(joined[place].strip()) or not joined[place].strip() for place in times):
            full, rest = columns.get("Function (Full)"), len(joined) - len(columns)
            if full is None or not rest:
                return joined
            return [*joined[:full], ", ".join(joined[full : full + rest + 1]), *joined[full + rest + 1 :]]
    return row


def _find(row: list[str], columns: dict[str, int], name: str) -> str:
    return row[columns[name]].strip() if name in columns else ""


def _parse_seconds(text: PlainText, cell: str, line: int) -> float:
    if not cell.strip():
        return 0.0
    found = _CELL.match(cell.strip().replace(",", ""))
    if found is None:
        raise text.make_error(line, f"{cell.strip()[:40]!r} is not a time")
    return text.parse_number(found[1], line)


def _build_call_paths(
    text: PlainText, cells: dict[tuple[str, str, str], dict[int, float]], threads: int, *, by_thread: bool
) -> CallPaths:
    if not any(any(at.values()) for at in cells.values()):
        raise InputError(text.path, "no function took any time")
    if len(cells) * threads > _MOST_CELLS:
        raise InputError(text.path, f"{len(cells):,} functions on {threads:,} threads are more than is read")
    nodes = []
    cpu = np.zeros((len(cells), threads))
    for row, ((function, _, file), at) in enumerate(cells.items()):
        name, role = classify_region(function)
        nodes.append(CallPathNode(name, role, None if file in _UNKNOWN else file))
        for thread, seconds in at.items():
            cpu[row, thread] = seconds
    return CallPaths(
        program="",
        run=text.path.name,
        reader="vtune",
        processors=tuple(Processor(0, thread) for thread in range(threads)),
        nodes=tuple(nodes),
        cpu_s=cpu,
        actual_s=math.nan,
        status="estimated",
        notes=(_CPU_ONLY,) if by_thread else (_CPU_ONLY, _TOGETHER),
    )
