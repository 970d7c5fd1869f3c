"""Lists of single activities, one a line: nvprof's ``--print-gpu-trace`` and ``--print-api-trace``, and the reports
``cuda_gpu_trace`` and ``cuda_api_trace`` of ``nsys stats``, as text or CSV.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from advisor.analysis.quality import RECORD_CUDA
from advisor.formats.decimal_commas import use_points
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.model.units import format_seconds
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, DeviceTrace

_UNITS: Final = {"s": 10**9, "sec": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "nsec": 1}
_HEAD: Final = re.compile(r'\s*"?Start(?: ?\((\w+)\))?"?(?:,|\s{2,})"?Duration(?: ?\((\w+)\))?"?(?:,|\s{2,})')
_NUMBER: Final = re.compile(r"(\d{1,18}(?:\.\d{1,12})?(?:[eE][-+]?\d{1,2})?)([a-z]*)$")
_SPACES: Final = re.compile(r"\s{2,}")
_RULE: Final = re.compile(r"\s*-+(?: +-+)*\s*$")
#: A run of nvprof's columns ends at a blank line, or where the next process begins.
_END: Final = re.compile(r"\s*$|==\d+==|Report file ")
#: A kernel's number behind its name, by which nvprof links it to its call.
_LINK: Final = re.compile(r" \[(\d{1,15})\]$")
_FAULTS: Final = "page faults"
#: Events of managed memory that take no time of their own: pages that were moved to and fro, or are read from afar.
_EVENTS: Final = ("page thrash", "throttling", "remote map")
_ABSENT: Final = ("", "-")
#: Names of one column in the different lists.
_ALIASES: Final = {
    "stream": ("Stream", "Strm"), "device": ("Device",), "context": ("Context", "Ctx"), "name": ("Name",),
    "link": ("Correlation_ID", "CorrId", "CorrID"), "thread": ("Tid",),
    "from": ("SrcMemType", "SrcMemKd"), "to": ("DstMemType", "DstMemKd"),
    "size": ("Size", "Bytes"), "rate": ("Throughput",),
}  # fmt: skip
_BYTES: Final = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_AMOUNT: Final = re.compile(r"(\d{1,15}(?:\.\d{1,12})?(?:[eE][-+]?\d{1,2})?)([KMGT]?B)?(?:/s|ps)?$")
_UNIT_OF_COLUMN: Final = re.compile(r" ?\(([KMGT]?B|s|sec|ms|us|ns|nsec)(?:/s|ps)?\)$")
#: Bytes, seconds and bytes per second may miss each other by so much: digits are rounded, and MB are 1000 or 1024 kB.
_AGREE: Final = 0.1
#: From this share of the recording on, what beginnings are rounded by matters.
_COARSE: Final = 0.05


@dataclass(slots=True)
class _Columns:
    """The columns of a list: their names without units, their units, and where each begins and ends, if fixed."""

    names: list[str]
    units: list[str]
    edges: list[tuple[int, int]] = field(default_factory=list)

    def find_cell(self, cells: list[str], alias: str) -> str:
        """Return the cell of a column under any of its names, nothing where it has none."""
        found = self._find_column(alias)
        text = cells[found].strip() if found is not None else ""
        return "" if text in _ABSENT else text

    def find_amount(self, cells: list[str], alias: str) -> float:
        """Return the bytes, or bytes per second, in the cell of a column; NaN where it holds none."""
        found, match = self._find_column(alias), _AMOUNT.match(self.find_cell(cells, alias).replace(",", ""))
        unit = (match[2] or self.units[found].removesuffix("/s")) if match and found is not None else ""
        return float(match[1]) * _BYTES[unit] if match and unit in _BYTES else math.nan

    def _find_column(self, alias: str) -> int | None:
        return next((self.names.index(name) for name in _ALIASES[alias] if name in self.names), None)


def read_device_trace(path: Path) -> DeviceTrace:
    """Return what the lists in the file at ``path`` hold; raises ``InputError`` with the line of what is damaged."""
    text = use_points(read_plain_text(path))
    builder = DeviceTraceBuilder()
    builder.begin_process()
    lists = _ListReader(text, builder)
    line = 0
    while line < len(text.lines):
        line = lists.read_list(line) if _HEAD.match(text.lines[line]) else line + 1
    if text.lines[-1] and lists.last == len(text.lines) - 1:
        raise text.make_error(lists.last, "the last line has no end: the file is cut off")
    if not builder.has_activities:
        raise InputError(path, "lists no kernels and no copies of a device")
    builder.notes += lists.describe_rounding()
    try:
        builder.end_process(0, None, 0, path)
        return builder.build_trace(path, program="", tool="nvprof or nsys stats")
    except (OverflowError, ValueError) as error:
        raise InputError(path, f"is damaged: {error}") from error


class _ListReader:
    """Reads one list after the other into the builder."""

    def __init__(self, text: PlainText, builder: DeviceTraceBuilder) -> None:
        self._text, self._builder = text, builder
        self._busy_until: dict[tuple[str, str], int] = {}
        self._rounded = self._begin = self._end = self._begun = 0
        self._seen: set[tuple[str, ...]] = set()
        self.last = -1

    def read_list(self, head: int) -> int:
        """Add the rows below the heading at ``head``; return the line behind them."""
        columns, line = self._parse_head(head)
        if tuple(columns.names) in self._seen:
            raise self._text.make_error(head, "a second list begins: give each run a file")
        self._seen.add(tuple(columns.names))
        while line < len(self._text.lines) and not _END.match(self._text.lines[line]):
            self._add_row(columns, line)
            self.last = line
            line += 1
        return line

    def _parse_head(self, head: int) -> tuple[_Columns, int]:
        """Return the columns that a heading names, and the line of the first row."""
        row = self._text.lines[head]
        below = self._text.lines[head + 1] if head + 1 < len(self._text.lines) else ""
        edges = [(found.start(), found.end()) for found in re.finditer("-+", below)] if _RULE.match(below) else []
        if "," in row:
            titles = self._split_commas(head)
        else:
            titles = [row[begin:end].strip() for begin, end in edges] if edges else _SPACES.split(row.strip())
        found = [_UNIT_OF_COLUMN.search(title.strip()) for title in titles]
        names = [title.strip()[: unit.start() if unit else None] for title, unit in zip(titles, found, strict=True)]
        units = [unit[1] if unit else "" for unit in found]
        if "," in row and not units[0] and below[:1].isalpha():  # nvprof gives the units in a line of their own
            return _Columns(names, (self._split_commas(head + 1) + [""] * len(names))[: len(names)]), head + 2
        return _Columns(names, units, edges), head + (2 if edges else 1)

    def _split_commas(self, line: int) -> list[str]:
        try:
            return next(csv.reader([self._text.lines[line]]), [])
        except csv.Error as error:
            raise self._text.make_error(line, f"no line of CSV: {error}") from None

    def _split(self, columns: _Columns, line: int) -> list[str]:
        row = self._text.lines[line]
        if columns.edges:
            ends = [end for _, end in columns.edges[:-1]]
            return [row[begin:end] for begin, end in zip([0, *ends], [*ends, len(row)], strict=True)]
        if "," in self._text.lines[line] and not row[:1].isspace() and _NUMBER.match(row.split(",", 1)[0]):
            return self._split_commas(line)
        return _SPACES.split(row.strip(), len(columns.names) - 1)

    def _add_row(self, columns: _Columns, line: int) -> None:
        """Add an activity or a call; faults of managed memory have no seconds of their own and are counted."""
        cells = self._split(columns, line)
        if len(cells) < len(columns.names):
            raise self._text.make_error(line, "a row of the list is cut off")
        name = columns.find_cell(cells, "name")
        if _FAULTS in name or any(event in name for event in _EVENTS):
            self._builder.add_count("page_faults", int(_FAULTS in name))
            return
        start, step = self._parse_time(cells[0], columns.units[0], line)
        length, _ = self._parse_time(cells[1], columns.units[1], line)
        device = columns.find_cell(cells, "device")
        number = columns.find_cell(cells, "link")
        found = _LINK.search(name)
        link = int(number) if number.isdecimal() and len(number) < 16 else int(found[1]) if found else -1
        name = name[: found.start()] if found else name
        if not device:
            thread = columns.find_cell(cells, "thread") or "host"
            self._builder.add_call(start, start + length, f"thread {thread}", naming.classify_call(name), name, link)
            return
        size, rate = columns.find_amount(cells, "size"), columns.find_amount(cells, "rate")
        if abs(rate * length * 1e-9 - size) > _AGREE * size:
            raise self._text.make_error(line, f"{length:,} ns at {rate:,.0f} B/s are not {size:,.0f} B")
        if start < self._begun:
            raise self._text.make_error(line, "the activities are not in the order of their beginnings")
        self._begun = start
        start = self._follow(start, length, step, (device, columns.find_cell(cells, "stream")))
        kind = naming.classify_activity(name)
        pageable = "Pageable" in columns.find_cell(cells, "from") + columns.find_cell(cells, "to")
        self._builder.add_activity(
            start, start + length, device, columns.find_cell(cells, "stream"), kind, name, link=link,
            size=-1 if math.isnan(size) else round(size), pageable=pageable or None,
            group=name if kind == Activity.COMMUNICATION else "",
        )  # fmt: skip

    def _follow(self, start: int, length: int, step: int, place: tuple[str, str]) -> int:
        """Return when an activity began: a stream does one thing after the other, but beginnings are rounded."""
        late = self._busy_until.get(place, start) - start
        start += late if 0 < late <= step else 0
        self._busy_until[place] = start + length
        self._rounded += step
        self._begin = min(self._begin or start, start)
        self._end = max(self._end, start + length)
        return start

    def _parse_time(self, cell: str, unit: str, line: int) -> tuple[int, int]:
        """Return a time and what its last digit stands for, in ns."""
        found = _NUMBER.match(cell.strip().replace(",", ""))
        scale = _UNITS.get((found[2] if found else "") or unit)
        if found is None or scale is None:
            raise self._text.make_error(line, f"{cell.strip()[:40]!r} is not a time")
        try:
            value = Decimal(found[1]) * scale
        except InvalidOperation:
            raise self._text.make_error(line, f"{cell.strip()[:40]!r} is not a time") from None
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or value > 1e18:
            raise self._text.make_error(line, f"{cell.strip()[:40]!r} is impossible here")
        return round(value), max(round(Decimal(scale).scaleb(exponent)), 1)

    def describe_rounding(self) -> list[Note]:
        """Return the doubt of a list in so few digits that its pauses are not known."""
        if self._rounded <= _COARSE * (self._end - self._begin):
            return []
        most = format_seconds(min(self._rounded, self._end - self._begin) * 1e-9)
        text = f"beginnings have so few digits that the pauses between activities may be wrong by {most} in all"
        return [Note("rounded times", text, 0.2, RECORD_CUDA)]
