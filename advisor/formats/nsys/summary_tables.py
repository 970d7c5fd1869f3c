"""Summaries of what a device did: those that nvprof prints, and ``nsys stats`` of Nsight Systems, as text or CSV.

They hold the seconds of each kernel and kind of copy on the devices, and of each call of the interface on the host.
When these ran, what the device waited for, and how long the run was is not in them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

import numpy as np

from advisor.analysis.quality import RECORD_CUDA, RECORD_ROCM
from advisor.formats.decimal_commas import use_points
from advisor.formats.plain_text import PlainText, read_plain_text
from advisor.model.errors import InputError
from advisor.model.records import Note, Processor, Profile
from advisor.support.stated_commands import state_command
from advisor.trace.callpaths.profile import from_call_paths
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

_NVPROF_COLUMNS: Final = frozenset(("Time(%)", "Time", "Calls", "Avg", "Name"))
_UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_TIME: Final = r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)(s|ms|us|ns)"
#: Kinds of rows; those of directives are calls of the interface once more.
_KINDS: Final = r"GPU activities|API calls|Open\w{2,3} \(\w{1,9}\)"
_NVPROF_ROW: Final = re.compile(
    rf"\s*(?:({_KINDS}): +)?(\d+(?:\.\d+)?)% +{_TIME} +(\d{{1,15}}) +{_TIME} +{_TIME} +{_TIME}"
    r" +(\S.*?)\s*$"
)
_CELLS: Final = re.compile(
    rf'(?:"?(?P<kind>{_KINDS})?"?,)?"?(\d+(?:\.\d+)?)%"?,{_TIME},(\d{{1,15}}),{_TIME},{_TIME},{_TIME}'
    r",(\S.*?)\s*$"
)
#: What nvprof calls the two kinds of rows that are counted.
_TYPES: Final = ("GPU activities", "API calls")
_API: Final = re.compile(r"==\d+== API calls:")
_PROFILED: Final = re.compile(
    r"==\d+== (?:NVPROF is profiling process \d+, command|Profiling application): +(\S.*?) *$"
)
_RESULT: Final = re.compile(r"==\d+== Profiling result:")
_COMMAS: Final = re.compile(r"(?:Time ?\(%\)|[\d.]*),")
_SPACES: Final = re.compile(r" {2,}")
_COUNT_COLUMNS: Final = {"Name": ("Instances", "Num Calls"), "Operation": ("Count", "Operations")}
#: The column that tells a table of calls from one of kernels, and what calls of CUDA begin with.
_CALLS: Final = "Num Calls"
_CUDA: Final = re.compile(r"cu[A-Z]|cuda[A-Z]")
#: By how much a share in percent, and an average, may miss what they are of.
_SHARE: Final = 0.06
_SLACK: Final = 0.01
_ALONE: Final = Note(
    "sums of device activities",
    "the table adds up kernels and copies: when they ran, what the device waited for, and how long the run was"
    " is not in it",
    0.0,
    RECORD_CUDA,
)
#: What one of the two tables alone leaves open, as of a file that was cut off between them.
_NO_CALLS: Final = Note("no sums of calls", "calls of the runtime on the host are not in it", 0.05)
_NO_DEVICES: Final = Note("no sums of devices", "kernels and copies are not in it", 0.05)


@dataclass(frozen=True, slots=True)
class DeviceSum:
    """Kernels, copies or calls of one name: their seconds, how many, and the share in percent that is printed.

    ``is_call`` is whether these are calls of the interface on the host, and no activities of devices.
    """

    name: str
    seconds: float
    calls: float
    percent: float
    is_call: bool = False


def read_summary(path: Path) -> Profile:
    """Return the activities of the devices; raises ``InputError`` with the line of what is damaged."""
    text = use_points(read_plain_text(path))
    found = (
        list(_parse_nvprof(text))
        or list(_parse_nvprof_cells(text))
        or list(_parse_nvprof_csv(text))
        or list(_parse_nsys(text))
    )
    command = next((match[1] for _, match in text.find_matches(_PROFILED)), "")
    return build_sums(found, path, "nsys", command)


def build_sums(found: Iterable[DeviceSum], path: Path, reader: str, command: str = "") -> Profile:
    """Return the profile of sums of devices and calls; raises ``InputError`` where there are none."""
    record = RECORD_CUDA if reader == "nsys" else RECORD_ROCM
    listed = sorted(found, key=lambda one: one.is_call)
    if not any(one.seconds > 0 for one in listed):
        raise InputError(path, f"the summary holds no kernels, no copies and no calls of the runtime: {record}")
    merged: dict[str, list[float]] = {}
    for one in listed:
        entry = merged.setdefault(one.name, [0.0, 0.0, 0.0])
        entry[one.is_call] += one.seconds
        entry[2] += one.calls
    table = np.array(list(merged.values()))
    counts = {"device_s": table[:, :1], "runtime_call_s": table[:, 1:2], "calls": table[:, 2:]}
    missing = (_NO_DEVICES,) if all(one.is_call for one in listed) else ()
    if not any(one.is_call for one in listed):
        missing = (_NO_CALLS,)
    paths = CallPaths(
        program=PurePath(command.split()[0]).name if command else "", run=path.name, reader=reader,
        processors=(Processor(0),), nodes=tuple(CallPathNode(name, Role.USER) for name in merged),
        parameters=state_command(command), wall_s=None,
        counts={name: seconds for name, seconds in counts.items() if seconds.any()},
        actual_s=float("nan"), notes=(replace(_ALONE, collect=record), *missing),
    )  # fmt: skip
    return from_call_paths(paths, path)


def _parse_nvprof(text: PlainText) -> Iterator[DeviceSum]:
    """Yield the rows of nvprof's table of the device, and the calls of its interface behind them."""
    kind = _TYPES[0]
    rows: tuple[list[DeviceSum], list[DeviceSum]] = ([], [])
    for line, row in enumerate(text.lines):
        if _API.match(row):
            kind = _TYPES[1]
        elif _RESULT.match(row):
            if any(rows):
                raise text.make_error(line, "the result of a second run begins: give each run a file")
            kind = _TYPES[0]
        cells = _NVPROF_ROW.match(row)
        if cells is None:
            continue
        kind = cells[1] or kind
        if kind not in _TYPES:
            continue
        one = _read_row(text, line, cells, cells[12], is_call=kind == _TYPES[1])
        rows[one.is_call].append(one)
    for table in rows:
        yield from _check_shares(text, table)


def _parse_nvprof_cells(text: PlainText) -> Iterator[DeviceSum]:
    """Yield the rows of nvprof's table in CSV where each cell holds its unit, and names with commas are not quoted."""
    rows: tuple[list[DeviceSum], list[DeviceSum]] = ([], [])
    kind = _TYPES[0]
    for line, row in enumerate(text.lines):
        found = _CELLS.match(row)
        if found is None:
            if rows[0] and not row.strip():
                break  # the calls of its interface follow
            continue
        kind = found["kind"] or kind
        if kind not in _TYPES:
            continue
        one = _read_row(text, line, found, found[12].strip('"'), is_call=kind == _TYPES[1])
        rows[one.is_call].append(one)
    for table in rows:
        yield from _check_shares(text, table)


def _read_row(text: PlainText, line: int, cells: re.Match[str], name: str, *, is_call: bool) -> DeviceSum:
    """Return a row of nvprof whose cells hold their units: share, total, number and average."""
    seconds, mean = (text.parse_number(cells[n], line) * _UNITS[cells[n + 1]] for n in (3, 6))
    return _check_row(text, line, DeviceSum(name, seconds, float(cells[5]), float(cells[2]), is_call), mean)


def _parse_nvprof_csv(text: PlainText) -> Iterator[DeviceSum]:
    """Yield the rows of nvprof's table in CSV, whose second line holds the units."""
    head = units = None
    rows: tuple[list[DeviceSum], list[DeviceSum]] = ([], [])
    for line, row in enumerate(text.lines):
        cells = _split_commas(text, line, row)
        if set(cells) >= _NVPROF_COLUMNS:
            head, units = cells, None
        elif head is not None and len(cells) == len(head):
            fields = dict(zip(head, cells, strict=True))
            if units is None:
                units = fields
                if not {units["Time"], units["Avg"]} <= _UNITS.keys():
                    raise text.make_error(line, f"{units['Time'][:20]!r} is not a unit of time")
            elif fields.get("Type", "GPU activities") in _TYPES:
                is_call = fields.get("Type") == _TYPES[1]
                seconds, mean = (text.parse_number(fields[n], line) * _UNITS[units[n]] for n in ("Time", "Avg"))
                calls, percent = (text.parse_number(fields[n], line) for n in ("Calls", "Time(%)"))
                one = DeviceSum(fields["Name"], seconds, calls, percent, is_call)
                rows[is_call].append(_check_row(text, line, one, mean))
        elif not row.strip():
            head = None
    for table in rows:
        yield from _check_shares(text, table)


def _parse_nsys(text: PlainText) -> Iterator[DeviceSum]:
    """Yield the rows of the table of kernels and of that of copies by time; raises ``InputError`` for a second run's.

    The same seconds once more are another view of the same kernels.
    """
    totals: dict[str, float] = {}
    line = 0
    while line < len(text.lines):
        head = _split(text, line)
        last = head[-1] if head else ""
        line += 1
        counted = _COUNT_COLUMNS.get(last, ())
        is_call = len(head) > 2 and head[2] == _CALLS
        if len(head) < 6 or head[1] != "Total Time (ns)" or head[2] not in counted or "GridXYZ" in head:
            continue
        begin = line
        rows: list[DeviceSum] = []
        while line < len(text.lines) and text.lines[line].strip():
            cells = _split(text, line, len(head))
            line += 1
            if set(cells[0]) <= {"-"}:
                continue
            if len(cells) < len(head):
                raise text.make_error(line - 1, "a row of the table is cut off")
            percent, total, calls, mean = (text.parse_number(cell.replace(",", ""), line - 1) for cell in cells[:4])
            name = cells[len(head) - 1]
            one = DeviceSum(name, total * 1e-9, calls, percent, is_call)
            rows.append(_check_row(text, line - 1, one, mean * 1e-9))
        if is_call and not any(_CUDA.match(row.name) for row in rows):
            continue  # calls of the operating system
        total_s = sum(row.seconds for row in _check_shares(text, rows))
        kind = head[2] if is_call else last
        if kind not in totals:
            totals[kind] = total_s
            yield from rows
        elif abs(total_s - totals[kind]) > _SLACK * totals[kind]:
            raise text.make_error(
                begin - 1, f"a second table of {total_s:.3g} s after one of {totals[kind]:.3g} s: give each run a file"
            )


def _split(text: PlainText, line: int, columns: int = 0) -> list[str]:
    """Return the cells of a row of a table: separated by commas, or by two blanks and more."""
    row = text.lines[line].strip()
    if _COMMAS.match(row):
        return _split_commas(text, line, row)
    return _SPACES.split(row, max(columns - 1, 0))


def _split_commas(text: PlainText, line: int, row: str) -> list[str]:
    try:
        return next(csv.reader([row]), [])
    except csv.Error as error:
        raise text.make_error(line, f"no line of CSV: {error}") from None


def _check_row(text: PlainText, line: int, row: DeviceSum, mean_s: float) -> DeviceSum:
    """Return the row; raises ``InputError`` where its total is not its average times its number, or it has no end."""
    if line == len(text.lines) - 1:
        raise text.make_error(line, "the last line has no end: the file is cut off")
    if abs(row.calls * mean_s - row.seconds) > _SLACK * row.seconds + 1e-9 * row.calls:
        raise text.make_error(line, f"{row.calls:g} times {mean_s:g} s are not {row.seconds:g} s")
    return row


def _check_shares(text: PlainText, rows: list[DeviceSum]) -> list[DeviceSum]:
    """Return the rows; raises ``InputError`` where their shares are not those of their seconds."""
    together = sum(row.seconds for row in rows)
    for row in rows:
        if together > 0 and abs(100 * row.seconds / together - row.percent) > _SHARE + _SLACK * row.percent:
            raise InputError(text.path, f"{row.name[:80]!r} is not {row.percent:g} % of the rows: the table is cut off")
    return rows
