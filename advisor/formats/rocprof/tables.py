"""From rocprofv3's tables of kernels, copies and API calls to a ``DeviceTrace``."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace
from advisor.trace.devices.iterations import find_iterations

#: Columns of whole numbers, and what none of them reaches.
_NUMBERS: Final = ("Start_Timestamp", "End_Timestamp", "Correlation_Id")
_MOST: Final = 1 << 62
#: What tells a table of counters, and of what a row in it is one.
_COUNTER: Final = "Counter_Name"
_DISPATCH: Final = ("Process_Id", "Agent_Id", "Dispatch_Id", *_NUMBERS)
_COUNTED: Final = Note(
    "counters collected",
    "counters were collected: the kernels ran one at a time, and the pauses between them are partly the profiler's",
    0.15,
    "rocprofv3 --kernel-trace --hip-trace -- ./PROGRAM",
)
_API: Final = ("hip_api", "hsa_api", "rccl_api")


def read_device_trace(processes: Sequence[Mapping[str, Path]]) -> DeviceTrace:
    """Return the run whose processes wrote these tables, each a rank in the order given."""
    builder = DeviceTraceBuilder()
    for rank, tables in enumerate(processes):
        builder.begin_process()
        # HSA calls lie inside HIP calls: they are read only where HIP's are missing.
        for kind in ("hip_api", "rccl_api") if "hip_api" in tables else _API:
            for row in _iterate_rows(tables.get(kind), "Function", "Thread_Id"):
                name = row["Function"]
                role = naming.classify_call(name)
                builder.add_call(*_times(row), f"thread {row['Thread_Id']}", role, name, int(row["Correlation_Id"]))
        for row in _iterate_dispatches(tables["kernel"], builder):
            name = row["Kernel_Name"]
            kind_of = naming.classify_activity(name)
            group = name if kind_of == Activity.COMMUNICATION else ""
            stream = row.get("Stream_Id") or row.get("Queue_Id") or 0
            builder.add_activity(
                *_times(row), row["Agent_Id"], stream, kind_of, name, link=int(row["Correlation_Id"]), group=group
            )
        ends = "Direction", "Source_Agent_Id", "Destination_Agent_Id"
        for row in _iterate_rows(tables.get("memory_copy"), *ends):
            device = row["Destination_Agent_Id"] if "HOST_TO" in row["Direction"] else row["Source_Agent_Id"]
            name = f"memcpy {row['Direction']}"
            builder.add_activity(
                *_times(row), device, "copies", Activity.COPY, name, link=int(row["Correlation_Id"]), pageable=False
            )
        _add_markers(builder, tables)
        builder.end_process(rank, None, 0, tables["kernel"])
    return builder.build_trace(processes[0]["kernel"], program="", tool="rocprofv3")


def _iterate_dispatches(path: Path, builder: DeviceTraceBuilder) -> Iterator[dict[str, str]]:
    """Yield the rows of kernels; where counters were collected, a row for each of them, only the first of a kernel."""
    seen: set[tuple[str, ...]] = set()
    for row in _iterate_rows(path, "Kernel_Name", "Agent_Id"):
        if _COUNTER in row:
            dispatch = tuple(row.get(column, "") for column in _DISPATCH)
            if dispatch in seen:
                continue
            seen.add(dispatch)
        yield row
    if seen and _COUNTED not in builder.notes:
        builder.notes.append(_COUNTED)


def _add_markers(builder: DeviceTraceBuilder, tables: Mapping[str, Path]) -> None:
    """Add ranges that the program marks; those that repeat are iterations."""
    ranges = []
    for row in _iterate_rows(tables.get("marker_api"), "Function", "Thread_Id"):
        start, end = _times(row)
        builder.add_call(start, end, f"thread {row['Thread_Id']}", CallRole.WORK, row["Function"])
        ranges.append((start, end, 0, row["Function"]))
    for start, end in find_iterations(ranges):
        builder.add_mark(start, end)


def _times(row: Mapping[str, str]) -> tuple[int, int]:
    start, end = int(row["Start_Timestamp"]), int(row["End_Timestamp"])
    return start, max(start, end)


def _iterate_rows(path: Path | None, *columns: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table that has ``columns``; raises ``InputError`` with the line where a cell is missing."""
    if path is None:
        return
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        reader = csv.DictReader(stream)
        try:
            if lost := [column for column in columns if column not in (reader.fieldnames or ())]:
                raise ValueError(f"no column {', '.join(lost)}")
            for row in reader:
                if None in row or None in row.values():
                    raise ValueError("a row of another length")
                if not all(-_MOST < int(row[column]) < _MOST for column in _NUMBERS):
                    raise ValueError("a number is out of range")
                yield row
        except (KeyError, TypeError, ValueError, OverflowError, csv.Error) as error:
            raise InputError(path, f"damaged or cut off: {error}", f"line {reader.line_num}") from error
