"""From the planes of an XSpace (``tsl/profiler/protobuf/xplane.proto``) to a ``DeviceTrace``: one file, one process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from advisor.formats.protobuf_wire import WireError, iterate_fields, to_bytes, to_signed, to_text, to_whole
from advisor.model.errors import InputError
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace

_DEVICE: Final = re.compile(r"^/device:(?:GPU|TPU|CUSTOM):(\d+)")
_HOST: Final = re.compile(r"^/host:CPU")
#: Lines of a device that hold what it does; others put that together by steps, modules and operators.
_LINES: Final = re.compile(r"^Stream #|^XLA Ops$|^Async XLA Ops$")
_GRID: Final = re.compile(r"grid:(\d+),(\d+),(\d+)")
_OCCUPANCY: Final = re.compile(r"occ_pct:([\d.]+)")
_SIZE: Final = re.compile(r"\bsize:(\d+)")
_STEP: Final = "step_num"
#: What starts and ends the recording, as Python's tracer names it in JAX and TensorFlow.
_OWN: Final = re.compile(r"^\$profiler\w*\.py:\d+ (start|stop)(?:_trace)?$")
#: Larger recordings are not taken into memory.
_LARGEST: Final = 4 << 30

#: No time is beyond.
_FAR: Final = 1 << 62

Stats = dict[str, int | str]
#: Start, end, name and statistics of what a thread did.
HostEvent = tuple[int, int, str, Stats]


def read_spaces(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these recordings hold, each a rank; raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    rank = 0
    for file in files:
        if file.stat().st_size > _LARGEST:
            raise InputError(file, "is larger than 4 GiB: record fewer steps")
        try:
            rank += _read_space(file, builder, rank)
        except WireError as error:
            raise InputError(file, f"is damaged or cut off: {error}", f"byte {error.offset}") from error
        except (OverflowError, RecursionError) as error:
            raise InputError(file, f"is damaged or cut off: {error}") from error
    if not rank:
        raise InputError(files[0], "holds no activities of devices and no calls of the host")
    return builder.build_trace(files[0], program="", tool="XLA profiler")


def _read_space(file: Path, builder: DeviceTraceBuilder, rank: int) -> bool:
    builder.begin_process()
    message = file.read_bytes()
    for number, value in iterate_fields(message):
        if number == 1:
            plane = _Plane(to_bytes(value))
            if found := _DEVICE.match(plane.name):
                _add_device(builder, plane, int(found[1]))
            elif _HOST.match(plane.name):
                _add_host(builder, plane)
    return builder.end_process(rank, file.name.removesuffix(".xplane.pb"), 0, file)


class _Plane:
    """One plane: its name, lines still packed, and the names of its events and statistics."""

    def __init__(self, message: bytes) -> None:
        self.name, self.lines = "", []
        self._events: dict[int, str] = {}
        self._stats: dict[int, str] = {}
        own = []
        for number, value in iterate_fields(message):
            if number == 2:
                self.name = to_text(value)
            elif number == 3:
                self.lines.append(to_bytes(value))
            elif number == 4:
                self._add_name(self._events, to_bytes(value))
            elif number == 5:
                self._add_name(self._stats, to_bytes(value))
            elif number == 6:
                own.append(to_bytes(value))
        self.stats = self._read_stats(own)

    @staticmethod
    def _add_name(names: dict[int, str], entry: bytes) -> None:
        """Add an entry of a map from numbers to metadata, whose second field is a name."""
        for number, value in iterate_fields(entry):
            if number == 2:
                known = dict(iterate_fields(to_bytes(value)))
                names[to_whole(known.get(1, 0))] = to_text(known.get(2, b""))

    def _read_stats(self, packed: Sequence[bytes]) -> Stats:
        found: Stats = {}
        for each in packed:
            fields = dict(iterate_fields(each))
            name = self._stats.get(to_whole(fields.get(1, 0)), "")
            if 5 in fields:
                found[name] = to_text(fields[5])
            elif 7 in fields:
                found[name] = self._stats.get(to_whole(fields[7]), "")
            elif 3 in fields or 4 in fields:
                found[name] = to_signed(to_whole(fields.get(3, fields.get(4, 0))))
        return found

    def iterate_events(self, line: bytes) -> Iterator[tuple[int, int, str, Stats]]:
        """Yield start and end in nanoseconds, name and statistics of the events of a line."""
        base, events = 0, []
        for number, value in iterate_fields(line):
            if number == 3:
                base = to_signed(to_whole(value))
            elif number == 4:
                events.append(to_bytes(value))
        for each in events:
            kind = offset = length = 0
            packed = []
            for number, value in iterate_fields(each):
                if number == 1:
                    kind = to_whole(value)
                elif number == 2:
                    offset = to_signed(to_whole(value))
                elif number == 3:
                    length = to_signed(to_whole(value))
                elif number == 4:
                    packed.append(to_bytes(value))
            start = base + offset // 1000
            yield start, base + (offset + max(length, 0)) // 1000, self._events.get(kind, ""), self._read_stats(packed)


def _find_line_name(line: bytes) -> str:
    fields = dict(pair for pair in iterate_fields(line) if pair[0] in (2, 11))
    return to_text(fields.get(2, fields.get(11, b"")))


def _add_device(builder: DeviceTraceBuilder, plane: _Plane, device: int) -> None:
    """Add what a device did; a plane of a TPU has operators, one of a GPU streams."""
    units = plane.stats.get("core_count", 0)
    for line in plane.lines:
        stream = _find_line_name(line)
        if not _LINES.match(stream):
            continue
        for start, end, name, stats in plane.iterate_events(line):
            kind = naming.classify_activity(name)
            details = (
                str(stats.get("memcpy_details", "")) if kind == Activity.COPY else str(stats.get("kernel_details", ""))
            )
            size = _SIZE.search(details) if kind == Activity.COPY else None
            link = stats.get("correlation_id", -1)
            builder.add_activity(
                start, end, device, stream, kind, name, size=int(size[1]) if size else -1,
                link=link if isinstance(link, int) else -1, group=name if kind == Activity.COMMUNICATION else "",
                pageable="pageable" in details, blocks_per_sm=_find_fill(details, units),
                occupancy=_find_occupancy(details),
            )  # fmt: skip


def _find_fill(details: str, units: int | str) -> float:
    """Return the blocks of a kernel for each multiprocessor, -1 where they are not told."""
    grid = _GRID.search(details)
    if grid is None or not isinstance(units, int) or units <= 0:
        return -1.0
    return int(grid[1]) * int(grid[2]) * int(grid[3]) / units or -1.0


def _find_occupancy(details: str) -> float:
    """Return the occupancy that a kernel could have, -1 where it was not worked out."""
    found = _OCCUPANCY.search(details)
    return float(found[1]) / 100 if found and float(found[1]) > 0 else -1.0


def _add_host(builder: DeviceTraceBuilder, plane: _Plane) -> None:
    """Add the calls of the host's threads; steps that the program numbers are iterations.

    To start and to end the recording takes seconds that the program does not take by itself: they are no part of it.
    """
    lines = [(_find_line_name(line), sorted(plane.iterate_events(line), key=_order_nested)) for line in plane.lines]
    begin, limit = _find_recorded(events for _, events in lines)
    for thread, events in lines:
        open_until: list[int] = []
        for started, ended, name, stats in events:
            if ended < begin or started > limit:
                continue
            start, end = max(started, begin), min(ended, limit)
            while open_until and open_until[-1] <= start:
                open_until.pop()
            inside = min(end, open_until[-1]) if open_until else end  # the ends of nested ranges are not sharp
            open_until.append(inside)
            link = stats.get("correlation_id", -1)
            role = naming.classify_call(name) if name else CallRole.WORK
            builder.add_call(start, inside, thread, role, name, link if isinstance(link, int) else -1)
            if _STEP in stats:
                builder.add_mark(start, inside)


def _order_nested(event: HostEvent) -> tuple[int, int]:
    return event[0], -event[1]


def _find_recorded(lines: Iterable[Sequence[HostEvent]]) -> tuple[int, int]:
    """Return when the call that started the recording returned, and when the one that ended it was made."""
    begin, limit = -_FAR, _FAR
    for start, end, name, _ in chain.from_iterable(lines):
        if own := _OWN.match(name):
            begin, limit = (max(begin, end), limit) if own[1] == "start" else (begin, min(limit, start))
    return (begin, limit) if begin < limit else (-_FAR, _FAR)
