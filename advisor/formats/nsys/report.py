"""From the tables of exported Nsight Systems reports to a ``DeviceTrace``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from advisor.formats.nsys import nvprof_database
from advisor.formats.nsys.columns import load_folder
from advisor.formats.nsys.nvprof_database import load_database
from advisor.formats.sqlite_files import open_database
from advisor.model.errors import InputError
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace, Direction
from advisor.trace.devices.iterations import find_iterations

#: ``globalTid`` and ``globalPid`` hold the process in these bits and the thread below.
_PROCESS, _BITS = 24, (1 << 24) - 1
_UNKNOWN: Final = -1
#: CUPTI's numbers for kinds of copies, and for pageable memory.
_DIRECTIONS: Final = {
    1: Direction.TO_DEVICE, 2: Direction.TO_HOST, 8: Direction.ON_DEVICE, 10: Direction.BETWEEN_DEVICES,
    11: Direction.TO_DEVICE, 12: Direction.TO_HOST, 13: Direction.ON_DEVICE,
}  # fmt: skip
#: … of which these move managed memory.
_MANAGED: Final = (11, 12, 13)
_FAULTS: Final = ("CUDA_UM_CPU_PAGE_FAULT_EVENTS", "CUDA_UM_GPU_PAGE_FAULT_EVENTS")
#: Tables whose rows are no spans of time.
_UNTIMED: Final = ("StringIds", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", *_FAULTS)
_PAGEABLE: Final = 0
#: NVTX ranges that are pushed and popped, and that are started and ended.
_RANGES: Final = (59, 60)
_MPI_TABLES: Final = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")


def list_tables(path: Path) -> set[str]:
    """Return the names of the tables of a database, nothing for what is none."""
    try:
        with closing(open_database(path)) as database:
            return {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return set()


def read_start_s(path: Path) -> float | None:
    """Return when the session of a report began, in seconds since 1970; None where it does not tell."""
    try:
        with closing(open_database(path)) as database:
            found = database.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    except sqlite3.Error:
        return None
    return 1e-9 * found[0] if found and isinstance(found[0], int) else None


def read_device_trace(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these reports hold; each process is a rank. Raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    rank = 0
    for file in files:
        try:
            with closing(_open_report(file)) as database:
                rank = _Report(database, file, builder).read_processes(rank)
        except (sqlite3.Error, OverflowError, TypeError, ValueError) as error:
            raise InputError(file, f"is damaged, or no export of Nsight Systems: {error}") from error
    if not rank:
        raise InputError(files[0], "the report holds no calls of CUDA and no activities of devices")
    return builder.build_trace(files[0], program="", tool="Nsight Systems")


def _open_report(file: Path) -> sqlite3.Connection:
    """Return the tables of a report, whatever they are exported as, or what nvprof recorded in their form."""
    if file.is_dir():
        return load_folder(file)
    return load_database(file) if nvprof_database.STRINGS in list_tables(file) else open_database(file)


class _Report:
    """Reads the processes of one report into the builder."""

    def __init__(self, database: sqlite3.Connection, file: Path, builder: DeviceTraceBuilder) -> None:
        self._database, self._file, self._builder = database, file, builder
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = {str(name) for (name,) in found}
        self._names = dict(self._rows("StringIds", "id", "value"))
        self._units, self._whole = self._find_devices()

    def _rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield some columns of a table, None for those it lacks; nothing where there is no such table."""
        if table not in self._tables:
            return
        known = {row[1] for row in self._database.execute(f"PRAGMA table_info({table})")}
        if not {"start", "end"} <= known and table not in _UNTIMED:
            return
        chosen = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
        yield from self._database.execute(f"SELECT {chosen} FROM {table}")

    def read_processes(self, rank: int) -> int:
        """Add the processes that used a device, in the order of their numbers; return the next rank."""
        calls = list(self._rows("CUPTI_ACTIVITY_KIND_RUNTIME", "start", "end", "globalTid", "nameId", "correlationId"))
        activities = [*self._iterate_activities()]
        processes = {_find_process(row[2]) for row in calls} | {row[0] for row in activities}
        if len(processes) > 1:
            processes.discard(_UNKNOWN)
        base = self._find_base()
        self._count_faults()
        self._count_sharing({(row[0], row[3]) for row in activities})
        for process in sorted(processes):
            self._builder.begin_process()
            for start, end, thread, name, link in calls:
                if _find_process(thread) == process:
                    self._add_call(thread, start, end, self._name(name).split("_v")[0], link)
            for _, start, end, device, stream, kind, name, size, link, direction, pageable, fill, local in (
                row for row in activities if row[0] in (process, _UNKNOWN)
            ):
                group = name if kind == Activity.COMMUNICATION else ""
                self._builder.add_activity(
                    start, end, device, stream, kind, name, group=group,
                    size=-1 if size is None else size, link=-1 if link is None else link,
                    direction=direction, pageable=pageable, blocks_per_sm=fill, local_bytes=local,
                )  # fmt: skip
            self._add_others(process)
            rank += self._builder.end_process(rank, None, base, self._file)
        return rank

    def _find_base(self) -> int:
        """Return when the recording began, nanoseconds since 1970, 0 where it is not told."""
        if "TARGET_INFO_SESSION_START_TIME" not in self._tables:
            return 0
        row = self._database.execute("SELECT * FROM TARGET_INFO_SESSION_START_TIME").fetchone()
        return next((value for value in row or () if isinstance(value, int) and value > 1 << 59), 0)

    def _name(self, number: object) -> str:
        return str(self._names.get(number, f"name {number}"))

    def _add_call(self, thread: int, start: int, end: int, name: str, link: int | None = None) -> None:
        role = naming.classify_call(name)
        self._builder.add_call(
            start, max(start, end), f"thread {thread & _BITS}", role, name, -1 if link is None else link
        )

    def _iterate_activities(self) -> Iterator[tuple[Any, ...]]:
        """Yield process, start, end, device, stream, kind, name, bytes, link, direction, pageable, fill, local."""
        where = ("start", "end", "deviceId", "streamId", "globalPid", "correlationId")
        of_kernels = (*where, "localMemoryPerThread", "gridX", "gridY", "gridZ", "demangledName", "shortName")
        for *row, local, x, y, z, long, short in self._rows("CUPTI_ACTIVITY_KIND_KERNEL", *of_kernels):
            start, end, device, stream, process, link = row
            name = self._name(long if long is not None else short)
            kind = naming.classify_activity(name)
            kind = Activity.COMPUTE if kind == Activity.COPY else kind
            units = self._units.get((_find_process(process), device), self._units.get((_UNKNOWN, device), 0))
            fill = x * y * z / units if units and x and y and z else -1.0
            yield (
                _find_process(process), start, end, device, stream, kind, name, -1, link, Direction.UNKNOWN, False,
                fill, -1 if local is None else local,
            )  # fmt: skip
        columns = (*where, "bytes", "copyKind", "srcKind", "dstKind")
        for *row, size, kind, source, target in self._rows("CUPTI_ACTIVITY_KIND_MEMCPY", *columns):
            start, end, device, stream, process, link = row
            direction = _DIRECTIONS.get(kind, Direction.UNKNOWN)
            ends = {Direction.TO_DEVICE: source, Direction.TO_HOST: target}
            managed = "managed memory " if kind in _MANAGED else ""
            name = f"memcpy {managed}{direction.name.lower().replace('_', ' ')}"
            pageable = not managed and ends.get(direction, -1) == _PAGEABLE
            yield (
                _find_process(process), start, end, device, stream, Activity.COPY, name, size, link, direction,
                pageable, -1.0, -1,
            )  # fmt: skip
        for *row, size in self._rows("CUPTI_ACTIVITY_KIND_MEMSET", *where, "bytes"):
            start, end, device, stream, process, link = row
            yield (
                _find_process(process), start, end, device, stream, Activity.COPY, "memset", size, link, Direction.FILL,
                False, -1.0, -1,
            )  # fmt: skip

    def _find_devices(self) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], object]]:
        """Return multiprocessors, and what identifies the whole device, by process and its number for the device."""
        counts = {number: units for number, units in self._rows("TARGET_INFO_GPU", "id", "smCount") if units}
        units = {(_UNKNOWN, number): count for number, count in counts.items()}
        whole: dict[tuple[int, int], object] = {}
        for gpu, number, process, uuid, count in self._rows(
            "TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid", "uuid", "numMultiprocessors"
        ):
            units[process, number] = count or counts.get(gpu, 0)
            whole[process, number] = uuid or gpu
        return units, whole

    def _count_faults(self) -> None:
        """Note the page faults of managed memory, where they were recorded."""
        for table in _FAULTS:
            for start, many in self._rows(table, "start", "numberOfPageFaults"):
                self._builder.add_count("page_faults", (many or 1) if start is not None else 0)

    def _count_sharing(self, used: set[tuple[int, int]]) -> None:
        """Note how many processes use one device, where the report tells which number means which device."""
        known = [self._whole[pair] for pair in used if pair in self._whole]
        if known:
            self._builder.raise_count("processes_per_device", max(known.count(each) for each in known))

    def _add_others(self, process: int) -> None:
        """Add calls of MPI, input and output, and ranges of NVTX, of which those that repeat are iterations."""
        for table in _MPI_TABLES:
            for start, end, thread, name in self._rows(table, "start", "end", "globalTid", "textId"):
                if _find_process(thread) == process:
                    self._add_call(thread, start, end, self._name(name))
        for start, end, thread, name in self._rows("OSRT_API", "start", "end", "globalTid", "nameId"):
            if _find_process(thread) == process and naming.classify_call(self._name(name)) != CallRole.WORK:
                self._add_call(thread, start, end, self._name(name))
        ranges = [
            (start, end, thread, str(text) if text is not None else self._name(number))
            for start, end, kind, thread, text, number in self._rows(
                "NVTX_EVENTS", "start", "end", "eventType", "globalTid", "text", "textId"
            )
            if kind in _RANGES and end is not None and _find_process(thread) == process
        ]
        for start, end, thread, name in ranges:
            self._builder.add_call(start, end, f"thread {thread & _BITS}", CallRole.WORK, name)
        for start, end in find_iterations(ranges):
            self._builder.add_mark(start, end)


def _find_process(number: int | None) -> int:
    return _UNKNOWN if number is None else number >> _PROCESS & _BITS
