"""The tables that DLB writes (``--talp-output-file=….csv``): one line per region and rank, one line per region."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor.formats.talp.recording import (
    ALWAYS,
    VALUES,
    ProcessRegion,
    RegionTotals,
    TalpRecording,
    tabulate_processes,
)
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

LIMIT: Final = 128 << 20  # bytes
SUMS: Final = "name,numCpus,"
#: The ends of the two files' names, as DLB makes them from the one that was asked for.
_ENDINGS: Final = ("-process.csv", "-pop.csv")
#: Titles by their lower case; DLB 3.5 begins them with capitals.
_TITLES: Final = {
    **{name.lower(): name for name in VALUES},
    "omploadimbalance": "ompLoadImbalanceTime",
    "nummpiranks": "numMpiRanks",
    "parallelefficiency": "parallelEfficiency",
}
_WHOLE: Final = re.compile(r"\d{1,18}")
_DECIMAL: Final = re.compile(r"\d{1,18}(\.\d+)?")


def find_sibling(path: Path, processes: bool) -> Path | None:
    """Return the table of processes, or of sums, that belongs to the table at ``path``; None where there is none."""
    ending, other = _ENDINGS if not processes else reversed(_ENDINGS)
    if not path.name.endswith(ending):
        return None
    found = path.with_name(path.name.removesuffix(ending) + other)
    return found if found.is_file() else None


def read_recording(path: Path) -> TalpRecording:
    """Return the recording in the tables at and beside ``path``; raises ``InputError`` with the line of a mistake."""
    if _read_first_line(path).startswith(SUMS):
        processes = find_sibling(path, processes=True)
        if processes is None:
            raise InputError(path, "only sums over all ranks; gapwatch needs the table of processes (…-process.csv)")
        return read_recording(processes)
    runs = list(_split_runs(path))
    sums = find_sibling(path, processes=False)
    found = tabulate_processes(path, runs[-1])
    return replace(found, totals=tuple(_read_totals(sums)) if sums else (), earlier_runs=len(runs) - 1)


def _read_first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="surrogateescape") as stream:
        return stream.readline(4096)


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield number and cells of each line, by title."""
    text = read_limited(path, LIMIT).decode("utf-8", "surrogateescape")
    if not text.endswith("\n"):
        raise InputError(path, "the last line has no end", f"line {text.count(chr(10)) + 1}")
    rows = csv.reader(io.StringIO(text), strict=True)
    titles: list[str] = []
    try:
        for row in rows:
            titles = titles or row
            more = len(row) - len(titles)
            if more > 0 and titles[0] == "Region":
                row[: more + 1] = [",".join(row[: more + 1])]  # DLB does not quote names, and they may hold commas
            if len(row) != len(titles):
                reason = f"{len(row)} cells below {len(titles)} titles; DLB writes JSON as well, which is safer"
                raise InputError(path, reason, f"line {rows.line_num}")
            if row is not titles and row[:3] != titles[:3]:
                yield rows.line_num, dict(zip(titles, row, strict=True))
    except csv.Error as error:
        raise InputError(path, str(error), f"line {rows.line_num}") from error


def _split_runs(path: Path) -> Iterator[list[ProcessRegion]]:
    """Yield the runs in a table of processes; DLB appends to a file that is there already."""
    run: list[ProcessRegion] = []
    seen: set[tuple[str, int]] = set()
    for line, cells in _read_lines(path):
        place = f"line {line}"
        missing = ALWAYS - {_TITLES.get(title.lower(), title.lower()) for title in cells}
        if missing:
            raise InputError(path, f"the column {min(missing)} is missing", "line 1")
        rank = int(_require_match(path, line, cells.get("Rank", ""), _WHOLE))
        key = (cells.get("Region", ""), rank)
        if key in seen:
            yield run
            run, seen = [], set()
        seen.add(key)
        run.append(ProcessRegion(key[0], rank, cells.get("Hostname"), place, _parse_values(path, line, cells, _WHOLE)))
    yield run


def _read_totals(path: Path) -> Iterator[RegionTotals]:
    """Yield the sums over all ranks, of the last run in the file."""
    found = {
        cells.get("name", ""): RegionTotals(
            cells.get("name", ""), f"line {line}", _parse_values(path, line, cells, _DECIMAL)
        )
        for line, cells in _read_lines(path)
    }
    yield from found.values()


def _parse_values(path: Path, line: int, cells: Mapping[str, str], form: re.Pattern[str]) -> dict[str, float]:
    """Return the values that are used, by the names they have in JSON."""
    known = {_TITLES[title.lower()]: cell for title, cell in cells.items() if title.lower() in _TITLES}
    return {name: float(_require_match(path, line, cell, form)) for name, cell in known.items()}


def _require_match(path: Path, line: int, cell: str, form: re.Pattern[str]) -> str:
    if not cell.isascii() or not form.fullmatch(cell):
        raise InputError(path, f"{cell[:40]!r} is impossible here", f"line {line}")
    return cell
