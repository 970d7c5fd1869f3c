"""The lines of DFTracer's files -> ``IoEvents``: one JSON object a line, times in microseconds since 1970."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from advisor.formats.io_events import METADATA, READ, SYNC, WRITE, IoEvents, IoRun, build_io_profile
from advisor.model.errors import InputError
from advisor.model.records import Note, Processor, Profile

_LIMIT: Final = 20_000_000
_LONGEST_LINE: Final = 1 << 20
_MICRO: Final = 1e-6
_LATEST_US: Final = 1 << 53
_READS: Final = frozenset({"read", "pread", "pread64", "readv", "preadv", "fread"})
_WRITES: Final = frozenset({"write", "pwrite", "pwrite64", "writev", "pwritev", "fwrite", "fprintf"})
_SYNCS: Final = frozenset({"fsync", "fdatasync", "fflush"})
_SEEKS: Final = frozenset({"lseek", "lseek64", "fseek"})
_OPENS: Final = frozenset({"open", "open64", "fopen", "fopen64", "creat", "openat"})
_SPAN: Final = "the run lasts from the first event to the last; what the program did before and after is not in it"
_CUT: Final = 0.1


def read_traces(files: Sequence[Path], path: Path) -> Profile:
    """Return the run at ``path``, of which ``files`` are the parts; raises ``InputError`` with the line at fault."""
    builder = _EventBuilder(path)
    for file in files:
        for number, line in _iterate_lines(file, builder):
            builder.add_line(file, number, line)
    return builder.build_profile()


def _iterate_lines(file: Path, builder: _EventBuilder) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold events; a file that was cut off ends where it can't be read any more."""
    with file.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    number = 0
    try:
        with gzip.open(file, "rb") if packed else file.open("rb") as lines:
            while line := lines.readline(_LONGEST_LINE):
                number += 1
                text = line.strip().rstrip(b",").strip(b"[] \0")
                if text:
                    yield number, text.decode("utf-8", "surrogateescape")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        builder.note_cut(file, number)


class _EventBuilder:
    """Collects the columns of the events of all files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, str] = {}
        self.hosts: dict[str, str] = {}
        self.processors: dict[tuple[str, int, int], int] = {}
        self.calls: dict[str, int] = {}
        self.files: dict[str, int] = {}
        self.rows: list[tuple[int, int, int, int, int, int, int]] = []
        self.positions: dict[tuple[str, int, int], int] = {}
        self.first_us, self.last_us = _LATEST_US, 0
        self.cut: str | None = None
        self.program = ""

    def note_cut(self, file: Path, number: int) -> None:
        """Note that a file ends early."""
        self.cut = f"{file.name} ends early, in line {number + 1}"

    def add_line(self, file: Path, number: int, line: str) -> None:
        """Add the event of a line; the last line of a file may be half of one."""
        if self.cut is not None and self.cut.startswith(f"{file.name} "):
            raise InputError(file, "no event: the trace is damaged", f"line {number - 1}")
        try:
            event = json.loads(line)
            arguments = event.get("args") or {}
            if event["ph"] == "M":
                self._add_name(event, arguments)
            elif event["ph"] == "X":
                self._add_call(event, arguments)
        except json.JSONDecodeError:
            self.note_cut(file, number - 1)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                file, f"no event of DFTracer ({type(error).__name__}: {error})", f"line {number}"
            ) from None
        if len(self.rows) > _LIMIT:
            raise InputError(file, f"more than {_LIMIT:,} events", f"line {number}")

    def _add_name(self, event: dict[str, Any], arguments: dict[str, Any]) -> None:
        """Note what a hash stands for (FH: files, HH: hosts), and the name of the program."""
        value, name = str(arguments.get("value", "")), str(arguments.get("name", ""))
        if event["name"] == "FH":
            self.names[value] = name
        elif event["name"] == "HH":
            self.hosts[value] = name
        elif name in ("exec_hash", "cmd_hash", "app_name"):
            self.program = self.program or value

    def _add_call(self, event: dict[str, Any], arguments: dict[str, Any]) -> None:
        start, took = int(event["ts"]), int(event["dur"])
        if not (0 <= start < _LATEST_US and 0 <= took < _LATEST_US):
            raise ValueError(f"a call at {start} us of {took} us is impossible")
        self.first_us, self.last_us = min(self.first_us, start), max(self.last_us, start + took)
        category, name = str(event["cat"]), str(event["name"])
        host = str(arguments.get("hostname", arguments.get("hhash", "")))
        place = (host, int(event["pid"]), int(event["tid"]))
        processor = self.processors.setdefault(place, len(self.processors))
        if category not in ("POSIX", "STDIO"):
            return
        moving = READ if name in _READS else WRITE if name in _WRITES else None
        what = moving or (SYNC if name in _SYNCS and category == "POSIX" else METADATA)
        call = self.calls.setdefault(f"{category} {what}", len(self.calls))
        path = arguments.get("fname", arguments.get("fhash"))
        file = -1 if path is None else self.files.setdefault(str(path), len(self.files))
        handle = (*place[:2], file)
        moved, offset = -1, -1
        if moving is not None:
            moved, offset = self._track_position(arguments, handle, streams=category == "STDIO")
            if max(moved, offset) >= _LATEST_US:
                raise ValueError(f"{max(moved, offset)} bytes are impossible")
        elif name in _OPENS:
            self.positions[handle] = 0
        elif name in _SEEKS:
            self.positions[handle] = int(arguments.get("ret", -1)) if name != "fseek" else -1
        self.rows.append((processor, call, file, start, took, moved, offset))

    def _track_position(
        self, arguments: dict[str, Any], handle: tuple[str, int, int], *, streams: bool
    ) -> tuple[int, int]:
        """Return bytes and offset of a read or write, -1 where they are not known; what failed moved nothing.

        ``fread`` and ``fwrite`` return items of ``size`` bytes.
        """
        moved = max(int(arguments.get("ret", -1)), 0) * (int(arguments.get("size", 1)) if streams else 1)
        if "offset" in arguments:
            return moved, max(int(arguments["offset"]), -1)
        offset = self.positions.get(handle, -1)
        if offset >= 0:
            self.positions[handle] = offset + moved
        return moved, offset

    def build_profile(self) -> Profile:
        """Return the run; raises ``InputError`` where there is no call on a file."""
        if not self.rows:
            raise InputError(self.path, "holds no call on a file: trace with DFTRACER_INC_METADATA=1 and POSIX on")
        columns = np.array(self.rows, dtype=np.int64).T
        start_s = (columns[3] - self.first_us) * _MICRO
        names = [self.names.get(name, name) for name in self.files]
        ranks = {place: n for n, place in enumerate(dict.fromkeys(place[:2] for place in self.processors))}
        threads: dict[tuple[str, int], int] = {}
        processors = []
        for host, process, _ in self.processors:
            thread = threads[host, process] = threads.get((host, process), -1) + 1
            processors.append(Processor(ranks[host, process], thread, self.hosts.get(host, host) or None))
        notes = [Note("span of events", _SPAN, 0.05)]
        if self.cut is not None:
            notes.append(Note("trace cut off", self.cut, _CUT))
        run = IoRun(
            program=self.hosts.get(self.program, self.program) or self.path.name.partition(".")[0],
            run=self.path.name,
            reader="dftracer",
            processors=tuple(processors),
            calls=tuple(self.calls),
            files=tuple(names),
            span_s=(0.0, (self.last_us - self.first_us) * _MICRO),
            started=datetime.fromtimestamp(self.first_us * _MICRO, UTC).isoformat(),
            notes=tuple(notes),
        )
        events = IoEvents(
            columns[0], columns[1], columns[2], start_s, start_s + columns[4] * _MICRO, columns[5], columns[6]
        )
        return build_io_profile(run, events)
