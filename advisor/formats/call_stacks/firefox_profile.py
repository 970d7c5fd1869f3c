"""Profiles in the processed format of the Firefox Profiler, which samply writes: samples of threads and their stacks.

Each sample tells what processor time its thread took since the one before. The tables of stacks, frames, functions and
texts belong to a thread, or are shared by all. Source: the documentation of the Firefox Profiler's processed format.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.formats.call_stacks.stacks import Frame, StackProfile, Unit
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.support import strict_json

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

_CPU_UNITS: Final = {"µs": 1e-6, "us": 1e-6, "ns": 1e-9}
_MS: Final = 1e-3
#: What the weights of samples are: times, or how many samples one stands for.
_SPANS, _COUNTS = "tracing-ms", "samples"
_MOST_THREADS: Final = 4096
_MOST_FRAMES: Final = 10_000_000
_DEEPEST: Final = 10_000
_MOST_LINES: Final = 1 << 31
#: A thread takes no more processor time than passes, but for what rounding adds.
_ROUNDING: Final = 1.05
_SLACK_S: Final = 1e-3
#: Where more than this share of the time is in code without names, a note says so.
_UNNAMED: Final = 0.5
#: A thread that spends less than this share of what the busiest does keeps house, and shares no work.
_AT_WORK: Final = 0.01
_NO_STACK: Final = (Frame("(no stack)"),)
_LATEST_MS: Final = 1e14
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_NO_NAMES: Final = Note(
    "addresses instead of names",
    "most functions have addresses instead of names: their library is shown",
    0.1,
    "perf record -g -- ./PROGRAM; perf script --header > perf.txt",
)


def parse(path: Path) -> StackProfile:
    """Return the threads of the process that spends most; raises ``InputError`` with the place of what is wrong."""
    root = strict_json.parse_json(path, read_content(path)).require_members("meta", "threads")
    meta = root["meta"].require_fields()
    shared = root["shared"].require_fields() if "shared" in root else {}
    read = (_Thread(node, shared, meta) for node in root["threads"].require_items(_MOST_THREADS))
    threads = [thread for thread in read if any(thread.amounts)]
    if len({thread.unit for thread in threads}) != 1:
        raise InputError(path, "no samples tell where time passed; record them with: samply record ./PROGRAM")
    spent: dict[str, float] = {}
    for thread in threads:
        spent[thread.process] = spent.get(thread.process, 0.0) + sum(thread.amounts)
    busiest = max(spent, key=lambda process: spent[process])
    own = [thread for thread in threads if thread.process == busiest]
    least = _AT_WORK * max(sum(thread.amounts) for thread in own)
    return _build_profile([thread for thread in own if sum(thread.amounts) >= least], meta, len(spent), path)


def _build_profile(threads: list[_Thread], meta: Mapping[str, JsonNode], processes: int, path: Path) -> StackProfile:
    unit = threads[0].unit
    wall_s = max(thread.end_s for thread in threads) - min(thread.begin_s for thread in threads)
    notes = []
    if processes > 1:
        text = f"the profile holds {processes} processes, of which the one that spends most is shown"
        notes.append(Note("several processes", text, 0.1))
    found = StackProfile(
        "Firefox Profiler", unit, {}, wall_s if unit != "samples" else math.nan, threads=len(threads),
        program=strict_json.optional_text(meta, "product") or "", started=_find_start(meta), notes=tuple(notes),
    )  # fmt: skip
    unnamed = 0.0
    for number, thread in enumerate(threads):
        total = sum(thread.amounts)
        if unit != "samples" and total > _ROUNDING * wall_s + _SLACK_S:
            raise InputError(path, f"damaged: a thread spends {total:g} s in a recording of {wall_s:g} s")
        for stack, named, amount in thread.iterate_samples():
            found.add_spent(stack, number, amount)
            unnamed += 0.0 if named else amount
    without_names = unnamed > _UNNAMED * sum(map(sum, found.spent.values()))
    return replace(found, notes=(*notes, _NO_NAMES)) if without_names else found


def _find_start(meta: Mapping[str, JsonNode]) -> str | None:
    milliseconds = meta["startTime"].require_number(0.0) if "startTime" in meta else 0.0
    if not 0 < milliseconds < _LATEST_MS:
        return None
    return datetime.datetime.fromtimestamp(milliseconds * _MS, datetime.UTC).isoformat(timespec="seconds")


class _Thread:
    """The samples of a thread: when each was taken, its stack, and what it stands for."""

    def __init__(self, node: JsonNode, shared: Mapping[str, JsonNode], meta: Mapping[str, JsonNode]) -> None:
        self._fields = {**shared, **node.require_members("samples")}
        samples = self._fields["samples"].require_members("stack")
        self.process = str(self._fields["pid"].value) if "pid" in self._fields else ""
        self._stacks = samples["stack"]
        self._count = len(self._stacks.require_list())
        self._times = self._read_times(samples)
        self.begin_s, self.end_s = (self._times[0], self._times[-1]) if self._times else (0.0, 0.0)
        units = meta["sampleUnits"].require_fields() if "sampleUnits" in meta else {}
        scale = _CPU_UNITS.get(strict_json.optional_text(units, "threadCPUDelta") or "")
        self.unit, self.amounts = self._read_amounts(samples, scale)

    def _read_times(self, samples: Mapping[str, JsonNode]) -> list[float]:
        """Return when each sample was taken, seconds; raises ``InputError`` where time runs backwards."""
        name = "time" if "time" in samples else "timeDeltas"
        if name not in samples:
            return []
        times: list[float] = []
        now = 0.0
        for node in self._require_items(samples[name]):
            number = node.require_number() * _MS
            now = number if name == "time" else now + number
            if times and now < times[-1]:
                raise node.make_error("time runs backwards here")
            times.append(now)
        return times

    def _require_items(self, node: JsonNode) -> list[JsonNode]:
        items = node.require_items()
        if len(items) != self._count:
            raise node.make_error(f"{len(items)} values of {self._count} samples")
        return items

    def _read_amounts(self, samples: Mapping[str, JsonNode], scale: float | None) -> tuple[Unit, list[float]]:
        """Return what the samples stand for, and how much of it each: processor time, if it was recorded."""
        if self._times and scale and "threadCPUDelta" in samples:
            deltas = self._require_items(samples["threadCPUDelta"])
            # what a thread took before its first sample is not of the recording
            read = [0.0 if node.value is None else node.require_number(0.0) * scale for node in deltas[1:]]
            return "cpu_s", [0.0, *read]
        kind = strict_json.optional_text(samples, "weightType") or _COUNTS
        weights = self._require_items(samples["weight"]) if "weight" in samples else []
        amounts = [abs(node.require_number()) for node in weights] or [1.0] * self._count
        if kind == _SPANS:
            return "wall_s", [amount * _MS for amount in amounts]
        return "samples", amounts if kind == _COUNTS else []

    def iterate_samples(self) -> Iterator[tuple[tuple[Frame, ...], bool, float]]:
        """Yield the stack of each sample, outermost function first, whether its top has a name, and its amount."""
        tables = _Tables(self._fields)
        for place, amount in enumerate(self.amounts):
            if amount > 0:
                yield *tables.find_stack(_read_number(self._stacks.find_item(place))), amount


def _read_number(node: JsonNode) -> int | None:
    return None if node.value is None else node.require_whole(-1)


class _Tables:
    """The tables that turn the number of a stack into functions."""

    def __init__(self, fields: Mapping[str, JsonNode]) -> None:
        self._fields = fields
        self._columns: dict[tuple[str, str], JsonNode | None] = {}
        self._stacks: dict[int, tuple[tuple[Frame, ...], bool]] = {}
        self._frames: dict[int, tuple[Frame, bool]] = {}
        self._left = _MOST_FRAMES

    def _find(self, table: str, column: str, place: int) -> int | None:
        """Return a number in a table; None where there is none, or no such column."""
        if (table, column) not in self._columns:
            fields = self._fields[table].require_fields() if table in self._fields else {}
            self._columns[table, column] = fields.get(column)
        found = self._columns[table, column]
        return None if found is None else _read_number(found.find_item(place))

    def _find_text(self, number: int | None) -> str:
        name = "stringArray" if "stringArray" in self._fields else "stringTable"
        if number is None or number < 0 or name not in self._fields:
            return ""
        return self._fields[name].find_item(number).require_text()

    def find_stack(self, number: int | None) -> tuple[tuple[Frame, ...], bool]:
        """Return the functions of a stack, outermost first, and whether the one on top has a name."""
        if number is None:
            return _NO_STACK, True
        if number not in self._stacks:
            frames: list[Frame] = []
            place: int | None = number
            while place is not None and len(frames) < _DEEPEST:
                frame, named = self._find_frame(self._find("stackTable", "frame", place))
                if named or not frames or frames[-1] != frame:  # of a library without names one is enough
                    frames.append(frame)
                place = self._find("stackTable", "prefix", place)
            self._left -= len(frames)
            if self._left < 0:
                raise self._fields["stackTable"].make_error(f"the stacks hold more than {_MOST_FRAMES:,} functions")
            top = self._find_frame(self._find("stackTable", "frame", number))
            self._stacks[number] = tuple(reversed(frames)), top[1]
        return self._stacks[number]

    def _find_frame(self, number: int | None) -> tuple[Frame, bool]:
        """Return a function, and whether it has a name: else its library is shown."""
        if number is None:
            return _NO_STACK[0], True
        if number not in self._frames:
            function = self._find("frameTable", "func", number) or 0
            name = self._find_text(self._find("funcTable", "name", function))
            if name and not _ADDRESS.fullmatch(name):
                line = self._find("funcTable", "lineNumber", function) or 0
                file = self._find_text(self._find("funcTable", "fileName", function)) or None
                self._frames[number] = Frame(name, file, line if 0 < line < _MOST_LINES else None), True
            else:
                resource = self._find("funcTable", "resource", function)
                known = resource is not None and resource >= 0
                library = self._find_text(self._find("resourceTable", "name", resource or 0)) if known else ""
                self._frames[number] = Frame(f"[{library or 'unknown'}]"), False
        return self._frames[number]
