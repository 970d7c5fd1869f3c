"""From the packets of Perfetto traces (``protos/perfetto/trace``) to a ``DeviceTrace``: slices by their category."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from advisor.formats.protobuf_wire import WireError, iterate_fields, read_varint, to_bytes, to_text, to_whole
from advisor.model.errors import InputError
from advisor.trace.devices import naming
from advisor.trace.devices.builder import DeviceTraceBuilder
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace
from advisor.trace.devices.iterations import find_iterations

#: Fields of a packet.
_TIME, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _DEFAULTS, _TRACK = 8, 10, 11, 12, 13, 59, 60
#: Types of events.
_BEGIN, _END = 1, 2
#: Tables of interned texts in ``InternedData``, and where events name their entries.
_CATEGORIES, _NAMES, _ANNOTATIONS, _STRINGS = 1, 2, 3, 29
_CLEARED: Final = 1
_KERNELS: Final = re.compile(r"kernel_dispatch|device_(hip|cuda)_activity|gpu_render|kernel", re.I)
_COPIES: Final = re.compile(r"memory_copy|memcpy|memory_transfer", re.I)
_MARKERS: Final = re.compile(r"marker|roctx|nvtx|user_annotation", re.I)
_INSIDE: Final = re.compile(r"hsa", re.I)
_HIP: Final = re.compile(r"hip", re.I)

Slice = tuple[int, int, int, str, str, dict[str, Any]]


def read_traces(files: Sequence[Path]) -> DeviceTrace:
    """Return the run that these traces hold, each a rank; raises ``InputError`` for what is damaged."""
    builder = DeviceTraceBuilder()
    rank = 0
    for file in files:
        try:
            with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                slices, tracks = _Reader().read_slices(content)
            builder.begin_process()
            _add_slices(builder, slices, tracks)
            rank += builder.end_process(rank, None, 0, file)
        except WireError as error:
            raise InputError(file, f"is damaged or cut off: {error}", f"byte {error.offset}") from error
        except (OSError, OverflowError, ValueError) as error:
            raise InputError(file, f"is damaged or cut off: {error}") from error
    if not rank:
        raise InputError(files[0], "holds no slices of kernels or of calls to a device's runtime")
    return builder.build_trace(files[0], program="", tool="Perfetto")


def _iterate_packets(content: mmap.mmap) -> Iterator[bytes]:
    """Yield the packets: fields 1 of the file."""
    place, last = 0, len(content)
    while place < last:
        head = content[place : place + 16]
        key, used = read_varint(head, 0)
        if key != 0x0A:
            raise WireError("no packet begins here", place)
        length, used = read_varint(head, used)
        place += used
        if place + length > last:
            raise WireError("a packet is cut off", place)
        yield content[place : place + length]
        place += length


class _Reader:
    """Puts begins and ends of slices together; texts are interned by sequence."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, int, int], str] = {}
        self._default_track: dict[int, int] = {}
        self._open: dict[int, list[tuple[int, str, str, dict[str, Any]]]] = {}
        self._tracks: dict[int, str] = {}
        self._slices: list[Slice] = []

    def read_slices(self, content: mmap.mmap) -> tuple[list[Slice], dict[int, str]]:
        """Return start, end, track, category, name and annotations of each slice, and the names of the tracks."""
        for packet in _iterate_packets(content):
            fields = dict(iterate_fields(packet))
            sequence = to_whole(fields.get(_SEQUENCE, 0))
            if to_whole(fields.get(_FLAGS, 0)) & _CLEARED:
                self._texts = {key: text for key, text in self._texts.items() if key[0] != sequence}
            if _INTERNED in fields:
                self._intern(sequence, to_bytes(fields[_INTERNED]))
            if _DEFAULTS in fields:
                self._note_defaults(sequence, to_bytes(fields[_DEFAULTS]))
            if _TRACK in fields:
                self._note_track(to_bytes(fields[_TRACK]))
            if _EVENT in fields and _TIME in fields:
                self._add_event(sequence, to_whole(fields[_TIME]), to_bytes(fields[_EVENT]))
        return self._slices, self._tracks

    def _intern(self, sequence: int, message: bytes) -> None:
        for table, entry in iterate_fields(message):
            if table in (_CATEGORIES, _NAMES, _ANNOTATIONS, _STRINGS):
                known = dict(iterate_fields(to_bytes(entry)))
                self._texts[sequence, table, to_whole(known.get(1, 0))] = to_text(known.get(2, b""))

    def _note_defaults(self, sequence: int, message: bytes) -> None:
        defaults = dict(iterate_fields(message))
        if _EVENT in defaults:
            known = dict(iterate_fields(to_bytes(defaults[_EVENT])))
            self._default_track[sequence] = to_whole(known.get(11, 0))

    def _note_track(self, message: bytes) -> None:
        fields = dict(iterate_fields(message))
        name = to_text(fields.get(2, fields.get(10, b"")))
        if 4 in fields:
            thread = dict(iterate_fields(to_bytes(fields[4])))
            name = name or to_text(thread.get(5, b"")) or f"thread {thread.get(2, 0)!r}"
        self._tracks[to_whole(fields.get(1, 0))] = name

    def _add_event(self, sequence: int, moment: int, message: bytes) -> None:
        kind, track = 0, self._default_track.get(sequence, 0)
        category = name = ""
        packed = []
        for number, value in iterate_fields(message):
            if number == 9:
                kind = to_whole(value)
            elif number == 11:
                track = to_whole(value)
            elif number == 3:
                category = category or self._texts.get((sequence, _CATEGORIES, to_whole(value)), "")
            elif number == 22:
                category = category or to_text(value)
            elif number == 10:
                name = self._texts.get((sequence, _NAMES, to_whole(value)), "")
            elif number == 23:
                name = to_text(value)
            elif number == 4:
                packed.append(to_bytes(value))
        if kind == _BEGIN:
            known = dict(self._read_annotation(sequence, each) for each in packed)
            self._open.setdefault(track, []).append((moment, category, name, known))
        elif kind == _END and self._open.get(track):
            start, category, name, known = self._open[track].pop()
            self._slices.append((start, max(start, moment), track, category, name, known))

    def _read_annotation(self, sequence: int, message: bytes) -> tuple[str, int | str]:
        fields = dict(iterate_fields(message))
        name = to_text(fields[10]) if 10 in fields else self._texts.get(
            (sequence, _ANNOTATIONS, to_whole(fields.get(1, 0))), ""
        )  # fmt: skip
        if 6 in fields:
            return name, to_text(fields[6])
        if 17 in fields:
            return name, self._texts.get((sequence, _STRINGS, to_whole(fields[17])), "")
        return name, to_whole(next((fields[each] for each in (3, 4, 7) if each in fields), -1))


def _add_slices(builder: DeviceTraceBuilder, slices: Sequence[Slice], tracks: dict[int, str]) -> None:
    """Add kernels and copies by their agents, calls of threads, and ranges that the program marks."""
    has_hip = any(_HIP.search(category) and not _KERNELS.search(category) for _, _, _, category, _, _ in slices)
    ranges = []
    for start, end, track, category, name, known in slices:
        link = known.get("corr_id", known.get("correlation_id", -1))
        link = link if isinstance(link, int) else -1
        thread = tracks.get(track) or f"track {track}"
        if _KERNELS.search(category):
            kind = naming.classify_activity(name)
            builder.add_activity(
                start, end, known.get("agent", known.get("device", thread)), known.get("stream_ID", thread), kind, name,
                link=link, group=name if kind == Activity.COMMUNICATION else "",
                local_bytes=_find_whole(known, "private_segment_size"),
            )  # fmt: skip
        elif _COPIES.search(category):
            device = known.get("dst_agent" if "HOST_TO" in name else "src_agent", thread)
            size = _find_whole(known, "copy_bytes")
            builder.add_activity(start, end, device, "copies", Activity.COPY, f"memcpy {name}", size=size, link=link)
        elif _MARKERS.search(category):
            builder.add_call(start, end, thread, CallRole.WORK, name)
            ranges.append((start, end, track, name))
        elif not (has_hip and _INSIDE.search(category)):
            builder.add_call(start, end, thread, naming.classify_call(name), name, link)
    for start, end in find_iterations(ranges):
        builder.add_mark(start, end)


def _find_whole(known: dict[str, Any], name: str) -> int:
    value = known.get(name, -1)
    return value if isinstance(value, int) else -1
