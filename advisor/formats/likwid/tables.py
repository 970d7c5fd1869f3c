"""The tables in a file: for each region and group of events what each hardware thread counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.likwid.detection import detect_layout
from advisor.model.errors import InputError
from advisor.support.limited_files import read_limited

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

FILE_LIMIT: Final = 256 << 20
ROW_LIMIT: Final = 10_000
#: Nothing that is counted, and no time, is larger.
_LARGEST: Final = 1e24
_UNKNOWN: Final = frozenset({"-", "nan", "-nan", "inf", "-inf", "nil"})
_CSV_TABLE: Final = re.compile(r"TABLE,(?:Region (.*),)?Group (\d{1,6}) (Raw|Metric)( STAT)?,([^,]*),(\d{1,6}),*")
_TEXT_GROUP: Final = re.compile(r"(?:Region (.*), )?Group (\d{1,6}): (\S+)\s*")
_KINDS: Final = {"Region Info": "info", "Event": "event", "Metric": "metric"}
_DEVICE: Final = re.compile(r"GPU \d{1,4}")
RECORD_DEVICES: Final = "nsys profile -o run ./PROGRAM; nsys export --type sqlite run.nsys-rep"
_SUMS: Final = ("Sum", "Min", "Max", "Avg")


@dataclass(frozen=True, slots=True)
class EventGroup:
    """A region measured with a group of events; ``region`` is None where the program was not divided."""

    region: str | None
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class GroupTable:
    """A table; ``kind`` is ``info``, ``event`` or ``metric``, ``sums`` whether it holds sums over threads.

    ``names`` (R,) are those of the rows, ``values`` (R, columns) what was counted, NaN where nothing is known.
    """

    group: EventGroup
    kind: str
    sums: bool
    columns: tuple[str, ...]
    names: tuple[str, ...]
    values: FloatArray
    line: int

    @property
    def is_of_devices(self) -> bool:
        """Whether the columns are GPUs (likwid-perfctr -W), whose counts are not those of a thread."""
        return all(_DEVICE.fullmatch(column) for column in self.columns)


def read_tables(path: Path) -> list[GroupTable]:
    """Return the tables in the file at ``path``; raises ``InputError`` with the line that is none."""
    content = read_limited(path, FILE_LIMIT).decode("utf-8", "surrogateescape")
    *lines, rest = content.split("\n")
    if rest and not (rest.startswith("+-") and lines and lines[-1].startswith("| ")):
        raise InputError(path, "the last line has no end", f"line {len(lines) + 1}")
    lines += [rest] if rest else []  # the rule below a table, which has to be that above it
    lines = [line.removesuffix("\r") for line in lines]
    tables = list(_read_csv_tables(path, lines) if detect_layout(path) == "csv" else _read_text_tables(path, lines))
    if tables and all(table.is_of_devices for table in tables):
        raise InputError(path, f"holds counts of GPUs alone, without the times of kernels: {RECORD_DEVICES}")
    if not any(table.kind == "event" and not table.sums for table in tables):
        raise InputError(path, "there is no complete table of events")
    return tables


def _read_csv_tables(path: Path, lines: list[str]) -> Iterator[GroupTable]:
    at = 0
    while at < len(lines):
        found = _CSV_TABLE.fullmatch(lines[at])
        at += 1
        if not found:
            continue  # what else is printed, by the program as well
        group = EventGroup(found[1], int(found[2]), found[5])
        number, at = int(found[6]), _skip_blank_lines(lines, at)
        if at < len(lines) and lines[at].startswith("Region Info,"):
            yield _read_csv_table(path, lines, at, 2, group)
            at = _skip_blank_lines(lines, at + 3)
        table = _read_csv_table(path, lines, at, number, group)
        if table.kind != {"Raw": "event", "Metric": "metric"}[found[3]] or table.sums != bool(found[4]):
            raise InputError(path, "another table than was announced", f"line {at + 1}")
        yield table
        at += number + 1


def _skip_blank_lines(lines: list[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip(" ,"):
        at += 1
    return at


def _read_csv_table(path: Path, lines: list[str], at: int, number: int, group: EventGroup) -> GroupTable:
    if number > ROW_LIMIT or at + number + 1 > len(lines):
        raise InputError(path, f"the table of {number} rows is not complete", f"line {at + 1}")
    rows = [line.split(",") for line in lines[at : at + number + 1]]
    return _build_table(path, rows, at, group)


def _read_text_tables(path: Path, lines: list[str]) -> Iterator[GroupTable]:
    group: EventGroup | None = None
    at = 0
    while at < len(lines):
        found = _TEXT_GROUP.fullmatch(lines[at])
        if found:
            group = EventGroup(found[1], int(found[2]), found[3])
        boxed = lines[at].startswith("+-") and at + 1 < len(lines) and lines[at + 1].startswith("| ")
        if not boxed or group is None:
            at += 1
            continue
        inside = [lines[at + 1]]
        end = at + 3
        while end < len(lines) and lines[end].startswith("| "):
            inside.append(lines[end])
            end += 1
        if end >= len(lines) or not (lines[at] == lines[at + 2] == lines[end]):
            raise InputError(path, "the table is not complete", f"line {at + 1}")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in inside]
        if rows[0][0] in _KINDS:
            yield _build_table(path, rows, at + 1, group)
        at = end + 1


def _build_table(path: Path, rows: list[list[str]], at: int, group: EventGroup) -> GroupTable:
    """Return a table from its cells; the first row holds the titles, line ``at`` counted from 0."""
    while rows[0] and not rows[0][-1].strip():
        rows[0].pop()
    title = rows[0][0] if rows[0] else ""
    kind = _KINDS.get(title)
    first = 2 if kind == "event" else 1
    columns = tuple(rows[0][first:])
    if kind is None or not columns or len(columns) != len(set(columns)):
        raise InputError(path, "expected a row with the titles of columns", f"line {at + 1}")
    values = np.empty((len(rows) - 1, len(columns)))
    for n, row in enumerate(rows[1:]):
        line = at + 1 + n
        if len(row) < first + len(columns) or any(cell.strip() for cell in row[first + len(columns) :]):
            raise InputError(path, f"expected {first + len(columns)} columns", f"line {line + 1}")
        values[n] = [_parse_number(path, cell.strip(), line) for cell in row[first : first + len(columns)]]
    names = tuple(row[0] for row in rows[1:])
    return GroupTable(group, kind, columns == _SUMS, columns, names, values, at + 1)


def _parse_number(path: Path, text: str, line: int) -> float:
    if text in _UNKNOWN:
        return float("nan")
    try:
        found = float(text)
    except ValueError:
        raise InputError(path, f"{text[:40]!r} is not a number", f"line {line + 1}") from None
    if not -_LARGEST < found < _LARGEST or "_" in text:
        raise InputError(path, f"the number {text[:40]} is impossible", f"line {line + 1}")
    return found
