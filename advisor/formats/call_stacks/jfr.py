"""Java Flight Recorder: samples of the stacks of running threads, the processor time of the process, and its pauses."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from advisor.formats.call_stacks.jfr_chunks import DAMAGE, Chunk, read_chunks
from advisor.formats.call_stacks.stacks import Frame, StackProfile
from advisor.formats.plain_text import read_content
from advisor.model.errors import InputError
from advisor.model.records import Note
from advisor.model.units import format_seconds

_SAMPLE: Final = "jdk.ExecutionSample"
_SETTING, _LOAD = "jdk.ActiveSetting", "jdk.CPULoad"
_PROCESSORS, _PROGRAM, _GARBAGE = "jdk.CPUInformation", "jdk.JVMInformation", "jdk.GarbageCollection"
_EVENTS: Final = frozenset({_SAMPLE, _SETTING, _LOAD, _PROCESSORS, _PROGRAM, _GARBAGE})
#: How long a sample stands for where the recording does not tell: Java's setting by default.
_PERIOD_S: Final = 0.02
_PERIOD: Final = re.compile(r"(\d{1,18}) *(ns|us|ms|s)$")
_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_MOST_THREADS: Final = 4096
#: HotSpot samples no more threads than this in a period (``MAX_NR_OF_JAVA_SAMPLES``).
_AT_A_TIME: Final = 5
#: Where samples are less than this share of the processor time, other code than that of Java took most of it.
_COVERED: Final = 0.5
#: A share of the run that is worth a word.
_WORTH_TELLING: Final = 0.01
_HIDDEN_CLASS: Final = re.compile(r"[$/\d]*[/+]0x[0-9a-f]+(?:[./]\d+)?$")
_ASLEEP: Final = frozenset({"STATE_SLEEPING", "STATE_IN_OBJECT_WAIT", "STATE_PARKED"})


def parse(path: Path) -> StackProfile:
    """Return the stacks in the recording; raises ``InputError`` for one that is damaged or of Java 8."""
    recording = _Recording()
    for chunk in read_chunks(read_content(path), path):
        try:
            recording.add_chunk(chunk)
        except DAMAGE as error:  # where the types in the file give a field another kind of value than Java's
            raise InputError(path, f"damaged: an event holds {error}") from None
    return recording.build_stacks(path)


class _Recording:
    """What the chunks of a recording hold, added up."""

    def __init__(self) -> None:
        self.samples: Counter[tuple[tuple[Frame, ...], int]] = Counter()
        self.threads: dict[int, int] = {}
        self.period_s = _PERIOD_S
        self.wall_s = self.paused_s = self.start_s = 0.0
        self.loads: list[float] = []
        self.processors = 0
        self.program = ""

    def add_chunk(self, chunk: Chunk) -> None:
        """Take the events of a chunk."""
        self.start_s = self.start_s or chunk.start_ns * 1e-9
        self.wall_s += chunk.duration_ns * 1e-9
        stacks: dict[tuple[int, int], tuple[Frame, ...]] = {}
        for name, event in chunk.list_events(_EVENTS):
            if name == _SAMPLE:
                self._add_sample(chunk, event, stacks)
            elif name == _SETTING:
                self._read_setting(chunk, event)
            elif name == _LOAD:
                load = float(event.get("jvmUser", 0.0) + event.get("jvmSystem", 0.0))
                self.loads += [load] if math.isfinite(load) else []
            elif name == _GARBAGE:
                self.paused_s += event.get("sumOfPauses", 0) / max(chunk.ticks_per_s, 1)
            elif name == _PROCESSORS:
                self.processors = int(event.get("hwThreads", 0))
            else:
                self.program = _name_program(event.get("javaArguments") or "") or self.program

    def _add_sample(
        self, chunk: Chunk, event: dict[str, Any], stacks: dict[tuple[int, int], tuple[Frame, ...]]
    ) -> None:
        state = chunk.find_constant(event, "state") or {}
        trace = chunk.find_constant(event, "stackTrace")
        if trace is None or state.get("name") in _ASLEEP:
            return
        thread = chunk.find_constant(event, "sampledThread") or {}
        number = self.threads.setdefault(thread.get("osThreadId") or thread.get("javaThreadId") or 0, len(self.threads))
        if number >= _MOST_THREADS:
            raise InputError(chunk.path, f"more than {_MOST_THREADS:,} threads")
        key = event["stackTrace"]
        if key not in stacks:
            stacks[key] = tuple(_name_frame(chunk, frame) for frame in reversed(trace.get("frames") or []))
        if stacks[key]:
            self.samples[stacks[key], number] += 1

    def _read_setting(self, chunk: Chunk, event: dict[str, Any]) -> None:
        """Take the period of sampling: a time, or nanoseconds as async-profiler writes them."""
        kind, value = chunk.types.get(event.get("id", -1)), str(event.get("value") or "")
        if kind is None or kind.name != _SAMPLE or event.get("name") not in ("period", "interval"):
            return
        found = _PERIOD.match(value if not value.isdigit() else value + " ns")
        if found is not None and int(found[1]) > 0:
            self.period_s = int(found[1]) * _UNIT_S[found[2]]

    def build_stacks(self, path: Path) -> StackProfile:
        """Return the samples as CPU time of the threads that were sampled."""
        if not self.samples:
            raise InputError(path, "holds no samples of running code (jdk.ExecutionSample)")
        sample_s = self.period_s * self._count_unsampled()
        found = StackProfile(
            tool="Java Flight Recorder", unit="cpu_s", spent={}, wall_s=self.wall_s, threads=len(self.threads),
            program=self.program, language="java", notes=tuple(self._describe()),
            started=datetime.fromtimestamp(self.start_s, UTC).isoformat(timespec="seconds"),
        )  # fmt: skip
        for (stack, thread), count in self.samples.items():
            found.add_spent(stack, thread, count * sample_s)
        return found

    def _taken_s(self) -> float:
        """Return the processor time that the process took, NaN where it is not known."""
        load = sum(self.loads) / len(self.loads) if self.loads else math.nan
        return load * (self.processors or math.nan) * self.wall_s

    def _count_unsampled(self) -> float:
        """Return for how many samples each stands, since Java takes no more than a few threads at a time.

        So much is not sampled as the process took more processor time, and as the busiest thread can have run.
        """
        busy = Counter[int]()
        for (_, thread), count in self.samples.items():
            busy[thread] += count
        sampled_s = self.samples.total() * self.period_s
        most = min(len(self.threads) / _AT_A_TIME, self.wall_s / (max(busy.values()) * self.period_s))
        missing = self._taken_s() / sampled_s
        return max(min(most, missing), 1.0) if math.isfinite(missing) else 1.0

    def _describe(self) -> list[Note]:
        notes = []
        sampled_s = self.samples.total() * self.period_s * self._count_unsampled()
        if sampled_s < _COVERED * self._taken_s():
            text = (
                f"samples of Java code make up {format_seconds(sampled_s)} of the {format_seconds(self._taken_s())} of"
                " processor time that the process took: the rest is compiling, collecting garbage and native code"
            )
            notes.append(Note("part of the processor time", text, 0.1))
        if self.paused_s > _WORTH_TELLING * self.wall_s:
            text = f"the collector of garbage stopped all threads for {format_seconds(self.paused_s)} in all"
            notes.append(Note("pauses of the collector", text, 0.0))
        return notes


def _name_program(arguments: str) -> str:
    """Return the main class or archive, as the first word of Java's arguments names it."""
    first = (arguments.split() or [""])[0].rsplit("/", 1)[-1]
    return first.removesuffix(".jar") if first.endswith(".jar") else first.rsplit(".", 1)[-1]


def _name_frame(chunk: Chunk, frame: dict[str, Any]) -> Frame:
    method = chunk.find_constant(frame, "method") or {}
    name = (chunk.find_constant(method, "name") or {}).get("string") or "not named"
    kind = chunk.find_constant(chunk.find_constant(method, "type") or {}, "name") or {}
    owner = _HIDDEN_CLASS.sub("", kind.get("string") or "")
    if not owner:
        return Frame(str(name))
    return Frame(f"{owner.replace('/', '.')}.{name}", f"{owner.split('$')[0]}.java")
