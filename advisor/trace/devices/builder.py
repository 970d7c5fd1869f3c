"""Columns of a ``DeviceTrace`` under construction, process by process, in whole nanoseconds."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from advisor.model.errors import InputError
from advisor.trace.devices.events import (
    Activity,
    CallRole,
    Device,
    DeviceActivities,
    DeviceTrace,
    Direction,
    HostCalls,
    HostThread,
    invert_order,
)
from advisor.trace.devices.naming import find_direction, find_paradigms, is_pageable

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Note

_ACTIVITY_COLUMNS = (
    "start", "end", "device", "stream", "kind", "name", "link", "bytes", "direction", "pageable", "channel",
    "fill", "occupancy", "local",
)  # fmt: skip
#: A call of ``add_call_rows`` has these, one after the other.
CALL_COLUMNS = ("start", "end", "thread", "role", "name", "link")
#: Of a kernel begin, end, device, stream, name, link, blocks for each multiprocessor, occupancy.
KernelRow = tuple[int, int, int, int, int, int, float, float]


class HostWork(NamedTuple):
    """What a process did in place of a device, times in nanoseconds; bytes of a communication, -1 if unknown."""

    start: int
    end: int
    kind: Activity
    name: str
    size_B: int = -1


#: Names of kernels may be whole type expressions; more than this is not kept of them.
_LONGEST_NAME = 1000
#: Times beyond this are damaged: the sum of two of them must fit 64 bits.
_LARGEST = 1 << 61


class DeviceTraceBuilder:
    """Collects what the processes of a run and their devices did; times are nanoseconds by each process's clock."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.ranks_expected: int | None = None
        self.paradigms: dict[str, None] = {}
        self.copies_recorded = True
        self._counts: dict[str, float] = {}
        self._names: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._devices: list[Device] = []
        self._threads: list[HostThread] = []
        self._activities: list[dict[str, IntArray]] = []
        self._calls: list[dict[str, IntArray]] = []
        self._marks: list[tuple[int, int]] = []
        self._first_marks: list[tuple[int, int]] = []

    def begin_process(self) -> None:
        """Begin with another process: its devices and threads are its own."""
        self._act, self._call = array("q"), array("q")
        self._own_devices: dict[tuple[object, bool], int] = {}
        self._own_threads: dict[str, int] = {}
        self._streams: dict[str, int] = {}
        self._marks = []

    @property
    def has_activities(self) -> bool:
        """Whether the process has activities of devices."""
        return bool(self._act)

    def find_name(self, name: str) -> int:
        """Return the number of a name."""
        return self._names.setdefault(name[:_LONGEST_NAME], len(self._names))

    def find_thread(self, name: str) -> int:
        """Return the number of a thread of this process."""
        return self._own_threads.setdefault(name, len(self._own_threads))

    def add_activity(
        self, start: int, end: int, device: object, stream: object, kind: Activity, name: str, *,
        size: int = -1, link: int = -1, group: str = "", is_host: bool = False,
        direction: Direction | None = None, pageable: bool | None = None,
        blocks_per_sm: float = -1.0, occupancy: float = -1.0, local_bytes: int = -1,
    ) -> None:  # fmt: skip
        """Add what a device did; ``link`` is the number that its host call has as well, ``group`` names a channel.

        ``blocks_per_sm``, ``occupancy`` (a share) and ``local_bytes`` are of kernels, -1 where they are unknown.
        """
        number, lane = self.find_place(device, stream, is_host=is_host)
        copies = kind == Activity.COPY
        found = direction if direction is not None else find_direction(name) if copies else Direction.UNKNOWN
        channel = self._channels.setdefault(group, len(self._channels)) if group else -1
        row = [
            start, end, number, lane, kind, self.find_name(name), link, size, found,
            bool(pageable if pageable is not None else copies and is_pageable(name)), channel,
            _to_ppm(blocks_per_sm), _to_ppm(occupancy), local_bytes,
        ]  # fmt: skip
        _append_row(self._act, row)

    def add_call(self, start: int, end: int, thread: str, role: CallRole, name: str, link: int = -1) -> None:
        """Add a call of a host thread."""
        row = [start, end, self.find_thread(thread), role, self.find_name(name), link]
        _append_row(self._call, row)

    @property
    def call_count(self) -> int:
        """How many calls the process has so far."""
        return len(self._call) // len(CALL_COLUMNS)

    def add_call_rows(self, rows: list[int]) -> None:
        """Add calls, of each its ``CALL_COLUMNS``; the caller has checked their range and found thread and name."""
        self._call.fromlist(rows)

    def find_place(self, device: object, stream: object, *, is_host: bool = False) -> tuple[int, int]:
        """Return the numbers of a device of this process and of a stream."""
        number = self._own_devices.setdefault((device, is_host), len(self._own_devices))
        return number, self._streams.setdefault(str(stream), len(self._streams))

    def add_kernel_rows(self, rows: list[KernelRow]) -> None:
        """Add kernels; the caller has checked their range and found place and name."""
        table = self._act
        for start, end, device, lane, name, link, fill, occupancy in rows:
            table.extend(
                (start, end, device, lane, Activity.COMPUTE, name, link, -1, Direction.UNKNOWN, 0, -1,
                 _to_ppm(fill), _to_ppm(occupancy), -1)
            )  # fmt: skip

    def list_calls(self, numbers: Sequence[int]) -> list[tuple[int, int, int, str]]:
        """Return begin, end, thread and name of some calls of the process."""
        names, width = tuple(self._names), len(CALL_COLUMNS)
        rows = (self._call[number * width : (number + 1) * width] for number in numbers)
        return [(row[0], row[1], row[2], names[row[4]]) for row in rows]

    def add_count(self, name: str, amount: float) -> None:
        """Add to a number of the whole run that neither activities nor calls hold."""
        self._counts[name] = self._counts.get(name, 0.0) + amount

    def raise_count(self, name: str, amount: float) -> None:
        """Note a number of the whole run of which the largest counts."""
        self._counts[name] = max(self._counts.get(name, amount), amount)

    def add_mark(self, start: int, end: int) -> None:
        """Add an iteration."""
        _check_times(start, end)
        self._marks.append((start, end))

    def end_process(
        self, rank: int, host: str | None, base_ns: int, file: Path,
        work: Sequence[HostWork] | None = None,
    ) -> bool:  # fmt: skip
        """Close the process and return whether it holds anything; ``work`` is what it did in place of a device."""
        for start, end, kind, name, size in work or ():
            group = name if kind == Activity.COMMUNICATION else ""
            self.add_activity(start, end, "host", int(kind), kind, name, size=size, group=group, is_host=True)
        acts, calls = _split_columns(self._act, _ACTIVITY_COLUMNS), _split_columns(self._call, CALL_COLUMNS)
        if not len(acts["start"]) and not len(calls["start"]):
            return False
        if any(device.rank == rank for device in self._devices):
            raise InputError(file, f"is another trace of rank {rank}: name the traces of one run")
        acts["device"] += len(self._devices)
        calls["thread"] += len(self._threads)
        for table in (acts, calls):
            table["start"] += base_ns
            table["end"] += base_ns
        acts["call"] = _find_links(acts["link"], calls) + sum(len(table["start"]) for table in self._calls)
        acts["call"][_find_links(acts["link"], calls) < 0] = -1
        several = len(self._own_devices) > 1
        for number, (device, is_host) in enumerate(self._own_devices):
            name = f"rank {rank}" if is_host else f"rank {rank} device {device}" if several else f"rank {rank} device"
            self._devices.append(Device(name, rank, number, host, is_host))
        self._threads += [HostThread(name, rank, host) for name in self._own_threads]
        self._activities.append(acts)
        self._calls.append(calls)
        if not self._first_marks:
            self._first_marks = [(start + base_ns, end + base_ns) for start, end in sorted(self._marks)]
        return True

    def build_trace(self, file: Path, program: str, tool: str) -> DeviceTrace:
        """Return the trace of all processes; raises ``InputError`` where they hold nothing that takes time."""
        if not self._activities:
            raise InputError(file, "the trace holds nothing that takes time")
        acts = {n: np.concatenate([t[n] for t in self._activities]) for n in (*_ACTIVITY_COLUMNS, "call")}
        calls = {n: np.concatenate([t[n] for t in self._calls]) for n in CALL_COLUMNS}
        times = np.concatenate([acts["start"], calls["start"], acts["end"], calls["end"]])
        if not len(times) or times.max() <= times.min():
            raise InputError(file, "the trace holds nothing that takes time")
        base = int(times.min())

        def to_seconds(moments: IntArray) -> FloatArray:
            return (moments - base) / 1e9

        order, ordered = np.lexsort((-acts["end"], acts["start"])), np.lexsort((-calls["end"], calls["start"]))
        place = invert_order(ordered)
        acts = {name: column[order] for name, column in acts.items()}
        calls = {name: column[ordered] for name, column in calls.items()}
        marks = self._first_marks
        edges = [start for start, _ in marks] + [end for _, end in marks[-1:]]
        return DeviceTrace(
            program=program,
            tool=tool,
            names=tuple(self._names),
            devices=tuple(self._devices),
            threads=tuple(self._threads),
            activities=DeviceActivities(
                to_seconds(acts["start"]),
                to_seconds(acts["end"]),
                acts["device"],
                acts["stream"],
                acts["kind"],
                acts["name"],
                place[acts["call"]],
                acts["bytes"],
                acts["direction"],
                acts["pageable"].astype(bool),
                acts["channel"],
                acts["fill"],
                acts["occupancy"],
                acts["local"],
            ),
            calls=HostCalls(
                to_seconds(calls["start"]), to_seconds(calls["end"]), calls["thread"], calls["role"], calls["name"]
            ),
            marks_s=to_seconds(np.array(edges, dtype=np.int64)),
            begin_s=0.0,
            end_s=float(times.max() - base) / 1e9,
            paradigms=tuple(self.paradigms | dict.fromkeys(find_paradigms(self._names))),
            copies_recorded=self.copies_recorded,
            counts=self._counts,
            notes=tuple(self.notes),
            ranks_expected=self.ranks_expected,
        )


def _to_ppm(number: float) -> int:
    return -1 if number < 0 else round(number * 1e6)


def _append_row(table: array[int], row: list[int]) -> None:
    """Add a row that begins with two times, whole or not at all.

    Raises ``TypeError``, ``OverflowError`` or ``ValueError`` for what is no whole number in range.
    """
    _check_times(row[0], row[1])
    table.fromlist(row)


def _check_times(start: int, end: int) -> None:
    if not (-_LARGEST < start < _LARGEST and -_LARGEST < end < _LARGEST):
        raise ValueError("a time is out of range")


def _split_columns(table: array[int], names: tuple[str, ...]) -> dict[str, IntArray]:
    """Return the columns of a table that holds row after row."""
    rows: IntArray = np.array(table, dtype=np.int64).reshape(-1, len(names))
    return {name: rows[:, number].copy() for number, name in enumerate(names)}


def _find_links(link: IntArray, calls: dict[str, IntArray]) -> IntArray:
    """Return for each activity the call with its number, the first of several; -1 where there is none."""
    linked = np.flatnonzero(calls["link"] >= 0)
    order = linked[np.lexsort((calls["start"][linked], calls["link"][linked]))]
    known = calls["link"][order]
    place = np.searchsorted(known, link)
    found: IntArray = np.full(len(link), -1, dtype=np.int64)
    some = (place < len(known)) & (link >= 0)
    some[some] = known[place[some]] == link[some]
    found[some] = order[place[some]]
    return found
