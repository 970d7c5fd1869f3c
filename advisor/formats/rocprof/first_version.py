"""Recordings of rocprof 1 and 2 (``rocprof --hip-trace``): ``results.db``, and ``results.json`` with the same rows.

Calls, kernels and copies have their beginnings and ends in nanoseconds; in the database a kernel has the number of its
call.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from advisor.formats.plain_text import read_content
from advisor.formats.sqlite_files import open_database
from advisor.model.errors import InputError
from advisor.support import strict_json
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole
from advisor.trace.devices.iterations import find_iterations

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode
    from advisor.trace.devices.events import DeviceTrace

CALLS, KERNELS, COPIES, RANGES = "HIP", "OPS", "COPY", "rocTX"
#: Processes of the document by the tables of the database.
_PROCESSES: Final = {"CPU HIP API": CALLS, "COPY": COPIES, "Markers and Ranges": RANGES}
_DEVICE: Final = "GPU"
#: What takes a place in a queue and is no kernel: barriers and markers.
_NO_KERNEL: Final = "Unknown command type"
_MOST_EVENTS: Final = 20_000_000


def is_database(path: Path) -> bool:
    """Return whether a database is one of rocprof 1 or 2 with kernels."""
    try:
        with closing(open_database(path)) as database:
            columns = {row[1] for row in database.execute(f"PRAGMA table_info({KERNELS})")}
            return {"BeginNs", "EndNs", "dev-id"} <= columns
    except sqlite3.Error:
        return False


def read_recordings(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these files hold, each a process; raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    for rank, file in enumerate(files):
        builder.begin_process()
        try:
            rows = _iterate_document(file) if ".json" in file.suffixes else _iterate_tables(file)
            _add_rows(builder, rows)
            builder.end_process(rank, None, 0, file)
        except (sqlite3.Error, OverflowError, TypeError, ValueError) as error:
            raise InputError(file, f"is damaged, or no recording of rocprof: {error}") from error
    return builder.build_trace(files[0], program="", tool="rocprof")


def _add_rows(builder: DeviceTraceBuilder, rows: Iterator[tuple[str, int, int, object, object, str, int]]) -> None:
    """Add rows of table, beginning, end, device or thread, queue, name, and the number of a call."""
    ranges = []
    for table, start, end, place, queue, name, link in rows:
        if table == CALLS:
            builder.add_call(start, max(start, end), f"thread {place}", naming.classify_call(name), name, link)
        elif table == RANGES:
            builder.add_call(start, max(start, end), f"thread {place}", CallRole.WORK, name)
            ranges.append((start, max(start, end), hash(place), name))
        elif table == COPIES:
            builder.add_activity(start, max(start, end), place, "copies", Activity.COPY, name, link=link)
        elif name != _NO_KERNEL:
            kind = naming.classify_activity(name)
            kind = Activity.COMPUTE if kind == Activity.COPY else kind
            group = name if kind == Activity.COMMUNICATION else ""
            builder.add_activity(start, max(start, end), place, queue, kind, name, link=link, group=group)
    for start, end in find_iterations(ranges):
        builder.add_mark(start, end)


def _iterate_tables(file: Path) -> Iterator[tuple[str, int, int, object, object, str, int]]:
    with closing(open_database(file)) as database:
        for table in (CALLS, RANGES, COPIES, KERNELS):
            known = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            if not {"BeginNs", "EndNs", "Name"} <= set(known):
                continue
            place = '"dev-id", "queue-id"' if "dev-id" in known else "tid, NULL"
            link = '"Index"' if "Index" in known and table != RANGES else "-1"
            for begin, end, at, queue, name, number in database.execute(
                f'SELECT "BeginNs", "EndNs", {place}, "Name", {link} FROM {table}'
            ):
                yield table, int(begin), int(end), at, queue, str(name).strip('"'), int(number)


def _iterate_document(file: Path) -> Iterator[tuple[str, int, int, object, object, str, int]]:
    """Yield the same of the document, in which nothing tells which call issued what."""
    root = strict_json.parse_json(file, read_content(file)).require_members("traceEvents")
    events = [node.require_fields() for node in root["traceEvents"].require_items(_MOST_EVENTS)]
    tables: dict[str, str] = {}
    for event in events:
        if "name" in event and event["name"].value == "process_name":
            name = event["args"].require_members("name")["name"].require_text()
            tables[str(event["pid"].value)] = KERNELS if name.startswith(_DEVICE) else _PROCESSES.get(name, "")
    for event in events:
        table = tables.get(str(event["pid"].value)) if "pid" in event else None
        if table and "ph" in event and event["ph"].value == "X":
            fields = event["args"].require_members("BeginNs", "EndNs", "Name")
            begin, end = (_read_whole(fields[name]) for name in ("BeginNs", "EndNs"))
            on_device = table in (KERNELS, COPIES)
            place: Any = fields["dev-id" if on_device else "tid"].value
            queue: Any = fields["queue-id"].value if "queue-id" in fields else None
            yield table, begin, end, place, queue, fields["Name"].require_text(100_000).strip('"'), -1


def _read_whole(node: JsonNode) -> int:
    """Return a number that the document writes as text."""
    text = node.require_text()
    if not text.isdecimal() or len(text) > 18:
        raise node.make_error(f"{text[:40]!r} is not a time")
    return int(text)
