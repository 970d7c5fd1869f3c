"""Samples of ``perf script`` added up by thread, event and stack."""

from __future__ import annotations

import re
import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor.formats.number_lines import open_maybe_packed
from advisor.formats.perf.lines import LOST, RECORD, SAMPLE, TIMED_SAMPLE, StackFrame, parse_frame
from advisor.model.errors import InputError

#: A place in the source below its frame, which perf prints where asked to.
_SOURCE: Final = re.compile(rb"  (\S*:\d+|\S+\[[0-9a-f]+\])\s*")
#: A frame without indentation: an address, a name and a file.
_BARE: Final = re.compile(rb"[0-9a-f]{4,16} \S.* \([^()]*\)\s*")
#: A stack is told apart to this depth from its innermost function.
_DEPTH: Final = 512
_LINE: Final = 1 << 20
#: From so many samples of a thread the time between samples is known well enough.
_INTERVALS: Final = 100_000

#: A stack, innermost first, as places in ``Script.frames``.
Stack = tuple[int, ...]


@dataclass(slots=True)
class SampledThread:
    """What was sampled in a thread: ``weight`` holds the number of samples and their periods by event and stack.

    ``comms`` counts the samples by the name the thread had; ``interval`` holds, by event, time since the sample before
    and period. Without times ``first`` and ``last`` are None.
    """

    pid: int
    tid: int
    weight: dict[tuple[str, Stack], list[float]] = field(default_factory=dict)
    comms: dict[str, int] = field(default_factory=dict)
    first: float | None = None
    last: float | None = None
    interval: dict[str, tuple[array[float], array[float]]] = field(default_factory=dict)
    last_times: dict[str, float] = field(default_factory=dict)


#: What stands for the sample of an idle processor while its frames are read.
_IDLE: Final = (SampledThread(0, 0), "idle", 0.0)


@dataclass(slots=True)
class PerfScript:
    """All of a file: its threads by process and thread id, and which fields it has.

    ``header`` holds what perf says about the machine, where that was printed. ``is_cut`` is whether the file ends
    within a sample, which may lack frames, and other samples may be missing. ``idle_samples`` are those of processors
    without work, which belong to no thread.
    """

    path: Path
    frames: list[StackFrame] = field(default_factory=list)
    threads: dict[tuple[int, int], SampledThread] = field(default_factory=dict)
    header: dict[str, str] = field(default_factory=dict)
    samples: int = 0
    has_lost_samples: bool = False
    has_processes: bool = False
    has_stacks: bool = False
    has_objects: bool = False
    has_periods: bool = True
    is_cut: bool = False
    idle_samples: int = 0


def read_script(path: Path) -> PerfScript:
    """Return the samples of the file at ``path``; raises ``InputError`` with the line of what is damaged."""
    reading = _ScriptReader(PerfScript(path))
    script = reading.script
    try:
        with open_maybe_packed(path) as stream:
            for number, line in enumerate(stream, 1):
                if len(line) > _LINE:
                    raise InputError(path, "the line is too long", f"line {number}")
                script.is_cut = not line.endswith(b"\n")
                if not script.is_cut and not reading.add_line(line):
                    raise InputError(path, f"is not a sample of perf: {line[:80]!r}", f"line {number}")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(path, f"cannot be read: {error}") from error
    script.is_cut = reading.end_last_sample() or script.is_cut
    if not script.samples:
        raise InputError(path, "there are no samples")
    if not script.threads:
        raise InputError(path, "all samples are of idle processors")
    return script


class _ScriptReader:
    """Takes in the lines one by one."""

    def __init__(self, script: PerfScript) -> None:
        self.script = script
        self._lines: dict[bytes, int] = {}
        self._places: dict[StackFrame, int] = {}
        self._stack: list[int] = []
        self._sample: tuple[SampledThread, str, float] | None = None

    def end_last_sample(self) -> bool:
        """Count the last sample, and return whether the blank line behind it is missing."""
        is_open = self._sample is not None
        self._end_sample()
        return is_open

    def add_line(self, line: bytes) -> bool:
        """Take in a line and return whether it is understood."""
        if self._sample is not None:
            if line.startswith((b"\t", b"    ")) or self._is_bare_frame(line):
                self._push_frame(line)
                return True
            if line.strip() and self._stack:
                return _SOURCE.fullmatch(line) is not None
            self._end_sample()
        if not line.strip():
            return True
        if line.startswith(b"#"):
            self._read_header_line(line)
            return True
        return self._begin_sample(line) or _SOURCE.fullmatch(line) is not None

    def _is_bare_frame(self, line: bytes) -> bool:
        """Return whether a line is a frame that something stripped of its indentation."""
        return _BARE.fullmatch(line) is not None

    def _read_header_line(self, line: bytes) -> None:
        key, colon, value = line[1:].decode("utf-8", "replace").partition(" : ")
        if colon and len(self.script.header) < 100:
            self.script.header[key.strip()] = value.strip()

    def _begin_sample(self, line: bytes) -> bool:
        bare = line.strip(b"\n")
        found = TIMED_SAMPLE.fullmatch(bare) or SAMPLE.fullmatch(bare)
        if found is None:
            return False
        rest = found["rest"]
        if rest.startswith(RECORD):
            self.script.has_lost_samples = self.script.has_lost_samples or rest.startswith(LOST)
            return True
        if found["time"] is None and found["event"] is None:
            return False
        if int(found["tid"] or found["pid"]) == 0:  # the task of a processor that has nothing to do
            self.script.idle_samples += 1
            self.script.samples += 1
            self._sample = None if rest.strip() else _IDLE
            return True
        event = (found["event"] or b"samples").decode("utf-8", "replace")
        thread = self._require_thread(int(found["pid"]), found["tid"], found["comm"])
        period = 1.0 if found["period"] is None else float(found["period"])
        self.script.has_periods = self.script.has_periods and found["period"] is not None
        self.script.samples += 1
        if found["time"] is not None:
            _record_time(thread, event, float(found["time"]), period)
        if rest.strip():
            frame = self._number_frame(rest)
            _count_sample(thread, event, () if frame < 0 else (frame,), period)
        else:
            self._sample = (thread, event, period)
        return True

    def _require_thread(self, pid: int, tid: bytes | None, comm: bytes) -> SampledThread:
        """Return the thread; a single number is that of the thread, and the process is not known."""
        self.script.has_processes = self.script.has_processes or tid is not None
        key = (pid, int(tid)) if tid is not None else (-1, pid)
        thread = self.script.threads.get(key)
        if thread is None:
            thread = self.script.threads[key] = SampledThread(*key)
        name = comm.decode("utf-8", "surrogateescape")
        thread.comms[name] = thread.comms.get(name, 0) + 1
        return thread

    def _number_frame(self, line: bytes) -> int:
        """Return the place of a function in the list of all, -1 for one that is left out."""
        if line not in self._lines:
            frame = parse_frame(line)
            if frame is None:
                self._lines[line] = -1
                return -1
            if frame not in self._places:
                self._places[frame] = len(self.script.frames)
                self.script.frames.append(frame)
                self.script.has_objects = self.script.has_objects or frame.object is not None
            self._lines[line] = self._places[frame]
        return self._lines[line]

    def _push_frame(self, line: bytes) -> None:
        frame = self._number_frame(line)
        if frame >= 0 and len(self._stack) < _DEPTH:
            self._stack.append(frame)

    def _end_sample(self) -> None:
        if self._sample is not None and self._sample is not _IDLE:
            thread, event, period = self._sample
            self.script.has_stacks = self.script.has_stacks or len(self._stack) > 1
            _count_sample(thread, event, tuple(self._stack), period)
        self._sample = None
        self._stack = []


def _count_sample(thread: SampledThread, event: str, stack: Stack, period: float) -> None:
    weight = thread.weight.setdefault((event, stack), [0.0, 0.0])
    weight[0] += 1
    weight[1] += period


def _record_time(thread: SampledThread, event: str, now: float, period: float) -> None:
    thread.first = now if thread.first is None else min(thread.first, now)
    thread.last = now if thread.last is None else max(thread.last, now)
    if event in thread.last_times:
        since, periods = thread.interval.setdefault(event, (array("d"), array("d")))
        if len(since) < _INTERVALS and now > thread.last_times[event]:
            since.append(now - thread.last_times[event])
            periods.append(period)
    thread.last_times[event] = now
