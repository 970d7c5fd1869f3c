"""From rocprofv3's SQLite databases (rocpd, schema 3) to a ``DeviceTrace``; one holds one process, or several."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from advisor.formats.rocprof.grids import compute_groups_per_unit
from advisor.formats.sqlite_files import open_database
from advisor.model.errors import InputError
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace
from advisor.trace.devices.iterations import find_iterations

KERNELS: Final = "rocpd_kernel_dispatch"
#: Numbers by which a kernel may name the call that launched it, in the order in which versions of the schema used them.
_LINKS: Final = ("stack_id", "correlation_id")


def has_kernels(path: Path) -> bool:
    """Return whether a file is a database of rocprofv3 with a table of kernels."""
    try:
        with closing(open_database(path)) as database:
            return bool(_list_suffixes(database))
    except sqlite3.Error:
        return False


def _list_suffixes(database: sqlite3.Connection) -> list[str]:
    """Return the endings that the names of the tables of each process have; views without one repeat them."""
    rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [str(name)[len(KERNELS) :] for (name,) in rows if str(name).startswith(KERNELS)]


def read_databases(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these databases hold, each process a rank; raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    rank = 0
    for file in files:
        try:
            with closing(open_database(file)) as database:
                for suffix in _list_suffixes(database):
                    rank = _Tables(database, suffix, builder).read_processes(rank, file)
        except (sqlite3.Error, OverflowError, TypeError, ValueError) as error:
            raise InputError(file, f"is damaged, or no database of rocprofv3: {error}") from error
    if not rank:
        raise InputError(files[0], "holds no kernels and no calls of the runtime")
    return builder.build_trace(files[0], program="", tool="rocprofv3")


class _Tables:
    """Reads the tables with one suffix into the builder."""

    def __init__(self, database: sqlite3.Connection, suffix: str, builder: DeviceTraceBuilder) -> None:
        self._database, self._suffix, self._builder = database, suffix, builder
        self._strings = {number: str(words) for number, words in self._rows("string", "id", "string")}
        self._events = {row[0]: row[1:] for row in self._rows("event", "id", "category_id", *_LINKS)}

    def _rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield some columns of a table, None for those it lacks; nothing where there is no such table."""
        name = f"rocpd_{table}{self._suffix}"
        known = {row[1] for row in self._database.execute(f'PRAGMA table_info("{name}")')}
        if known:
            chosen = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
            yield from self._database.execute(f'SELECT {chosen} FROM "{name}"')

    def read_processes(self, rank: int, file: Path) -> int:
        """Add the processes, in the order of their numbers; return the next rank."""
        regions = list(self._rows("region", "pid", "tid", "start", "end", "name_id", "event_id", "extdata"))
        kernels = list(self._rows(
            "kernel_dispatch", "pid", "agent_id", "stream_id", "queue_id", "start", "end", "kernel_id", "event_id",
            "private_segment_size", "grid_size_x", "grid_size_y", "grid_size_z", "workgroup_size_x",
            "workgroup_size_y", "workgroup_size_z",
        ))  # fmt: skip
        copies = list(self._rows(
            "memory_copy", "pid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size", "event_id"
        ))  # fmt: skip
        self._link = self._choose_link(regions, kernels)
        self._units = dict(self._rows("info_agent", "id", "extdata"))
        hosts = dict(self._rows("info_node", "id", "hostname"))
        nodes = dict(self._rows("info_process", "id", "nid"))
        found = self._rows("info_kernel_symbol", "id", "display_name", "kernel_name")
        symbols = {number: shown or name for number, shown, name in found}
        for process in sorted({row[0] for table in (regions, kernels, copies) for row in table}):
            self._builder.begin_process()
            self._add_regions([row[1:] for row in regions if row[0] == process])
            for row in (row for row in kernels if row[0] == process):
                self._add_kernel(row, symbols)
            for row in (row for row in copies if row[0] == process):
                self._add_copy(row)
            rank += self._builder.end_process(rank, hosts.get(nodes.get(process)), 0, file)
        return rank

    def _choose_link(self, regions: list[Any], kernels: list[Any]) -> int:
        """Return which of ``_LINKS`` kernels and the calls that launched them share most often."""
        shared = []
        for column in range(len(_LINKS)):
            calls = {self._event(row[5])[1 + column] for row in regions} - {None, 0}
            shared.append(sum(self._event(row[7])[1 + column] in calls for row in kernels))
        return shared.index(max(shared))

    def _event(self, number: object) -> tuple[Any, ...]:
        return self._events.get(number, (None, None, None))

    def _find_link(self, event: object) -> int:
        found = self._event(event)[1 + self._link]
        return found if isinstance(found, int) and found > 0 else -1

    def _add_regions(self, rows: list[tuple[Any, ...]]) -> None:
        """Add calls, and ranges that the program marks; HSA's calls lie inside HIP's, and count only without those."""
        named = [(*row, self._strings.get(self._event(row[4])[0], "")) for row in rows]
        has_hip = any("HIP" in category for *_, category in named)
        ranges = []
        for thread, start, end, name, event, more, category in named:
            words = self._strings.get(name, f"name {name}")
            if "MARKER" in category:
                words = _find_message(more) or words
                self._builder.add_call(start, max(start, end), f"thread {thread}", CallRole.WORK, words)
                ranges.append((start, max(start, end), thread, words))
            elif "HSA" not in category or not has_hip:
                role = naming.classify_call(words)
                self._builder.add_call(start, max(start, end), f"thread {thread}", role, words, self._find_link(event))
        for start, end in find_iterations(ranges):
            self._builder.add_mark(start, end)

    def _add_kernel(self, row: tuple[Any, ...], symbols: dict[int, str]) -> None:
        _, agent, stream, queue, start, end, kernel, event, private, *sizes = row
        name = str(symbols.get(kernel, f"kernel {kernel}"))
        kind = naming.classify_activity(name)
        self._builder.add_activity(
            start, max(start, end), agent, stream if stream is not None else queue, kind, name,
            link=self._find_link(event), group=name if kind == Activity.COMMUNICATION else "",
            local_bytes=private if isinstance(private, int) else -1, blocks_per_sm=self._find_fill(agent, sizes),
        )  # fmt: skip

    def _find_fill(self, agent: int, sizes: Sequence[Any]) -> float:
        return compute_groups_per_unit(sizes[:3], sizes[3:], _find_number(self._units.get(agent), "cu_count"))

    def _add_copy(self, row: tuple[Any, ...]) -> None:
        _, start, end, name, target, source, size, event = row
        words = self._strings.get(name, "")
        device = target if "HOST_TO" in words else source
        self._builder.add_activity(
            start, max(start, end), device, "copies", Activity.COPY, f"memcpy {words}",
            size=size if isinstance(size, int) else -1, link=self._find_link(event), pageable=False,
        )  # fmt: skip


def _find_message(more: object) -> str:
    """Return the text of a marked range, which stands in a JSON object beside it; nothing where there is none."""
    try:
        found = json.loads(str(more))
    except ValueError:
        return ""
    return str(found.get("message", "")) if isinstance(found, dict) else ""


def _find_number(more: object, name: str) -> int:
    try:
        found = json.loads(str(more))
    except ValueError:
        return 0
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, int) and value > 0 else 0
