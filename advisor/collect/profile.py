"""From a recording to a Profile (docs/formats/run.md says what each array holds, and how sure it is)."""

from __future__ import annotations

import os
import shlex
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.disturbance import BUSY
from advisor.collect import notes
from advisor.collect.roles import STARTERS, WRAPPERS
from advisor.collect.thread_time_breakdown import ON_DISK, sum_by_call
from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, Phase, Profile, Region, Status

if TYPE_CHECKING:
    from advisor.collect.records import Recording
    from advisor.collect.sampled_run import SampledRun

READER: Final = "gapwatch run"
#: The seconds outside the program in which other programs held its processors.
DISPLACED: Final = "other programs"
BUILD_VARIABLE: Final = "GAPWATCH_BUILD"
#: If a larger share of the time in files is in calls without a name, nothing is said about the calls.
_UNNAMED: Final = 0.25
_COMMAND_LIMIT: Final = 4000
#: So many characters of its name the kernel keeps of a process.
_COMM: Final = 15
_READING: Final = ("read", "pread")
_WRITING: Final = ("write", "pwrite")


def build_profile(run: SampledRun, collect: str | None = None) -> Profile:
    """Return the Profile of a sampled run; ``collect`` is the command that would show more of it on this machine."""
    recording = run.recording
    table = _ProfileTable(run)
    return Profile(
        program=_find_busiest_program(run),
        run=f"{recording.started} {recording.processes[0].pid}",
        reader=READER,
        actual_s=recording.wall_s,
        processors=run.processors,
        regions=table.regions,
        phases=(Phase("run", "whole", np.arange(len(table.regions), dtype=np.int64), table.build_measures()),),
        status=table.build_status(),
        build=os.environ.get(BUILD_VARIABLE, "").strip() or None,
        started=recording.started,
        cores=run.cores or None,
        executable=_executable(recording),
        parameters=_collect_parameters(recording),
        outside=_compute_outside(run),
        counts=table.build_counts(),
        causes=table.build_causes(),
        notes=notes.build_notes(run, collect),
        ranks_expected=max((lane.process.ranks or 0 for lane in run.lanes), default=0) or None,
    )


def _find_busiest_program(run: SampledRun) -> str:
    """Return the name of the program on which most time was spent."""
    total: dict[str, float] = defaultdict(float)
    for lane, one in zip(run.lanes, run.thread_times, strict=True):
        total[lane.process.name] += one.cpu_s + sum(one.io_s.values()) + 1e-3 * one.life_s
    return max(total, key=lambda name: total[name])


def _executable(recording: Recording) -> str | None:
    """Return the file of the program that was run, as the command names it; None where a script hides it."""
    names = {process.name for process in recording.processes}
    called = (word for word in recording.arguments if PurePath(word).name[:_COMM] in names)
    found = next((shutil.which(word) for word in called if PurePath(word).name not in STARTERS | WRAPPERS), None)
    return os.path.abspath(found) if found else None


def _collect_parameters(recording: Recording) -> dict[str, str | float]:
    command = shlex.join(recording.arguments).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return {
        "command": command if len(command) <= _COMMAND_LIMIT else f"{command[:_COMMAND_LIMIT]}…",
        "exit status": recording.code,
        "sampling interval (s)": recording.interval_s,
        "samples": recording.samples,
        "CPU time of sampling (s)": round(recording.cost_s, 6),
    }


def _compute_outside(run: SampledRun) -> dict[str, FloatArray]:
    """Return the seconds in which nothing of the program ran yet or any more, and those without this processor."""
    wall_s = run.recording.wall_s
    first = min(one.start_s for one in run.thread_times)
    last = min(max(one.start_s + one.life_s for one in run.thread_times), wall_s)
    there = np.zeros(len(run.processors))
    np.add.at(there, list(run.processor), [one.life_s for one in run.thread_times])
    each = np.ones(len(run.processors))
    parts = {
        "start-up": first * each,
        "shutdown": (wall_s - last) * each,
        "not running": np.maximum(last - first - there, 0.0),
    }
    if run.is_preempted:
        parts[DISPLACED] = np.zeros(len(run.processors))
        np.add.at(parts[DISPLACED], list(run.processor), [one.delay_s for one in run.thread_times])
    return parts


class _ProfileTable:
    """The rows of the arrays: the programs, then the calls in which time went into files."""

    def __init__(self, run: SampledRun) -> None:
        self.run = run
        self.programs = list(dict.fromkeys(lane.process.name for lane in run.lanes))
        self.calls = list(sum_by_call(run.thread_times))
        self.regions = tuple(Region(name, threaded=self._has_threads) for name in (*self.programs, *self.calls))

    @property
    def _has_threads(self) -> bool:
        return any(processor.thread > 0 for processor in self.run.processors)

    def _call_row(self, call: str) -> int:
        return len(self.programs) + self.calls.index(call)

    def _make_zeros(self) -> FloatArray:
        return np.zeros((len(self.regions), len(self.run.processors), 1))

    def build_measures(self) -> dict[str, FloatArray]:
        """Return the measures (regions, processors, 1), those that a processor alone has or those of several."""
        own = {name: self._make_zeros() for name in ("wall_s", "cpu_s", "work_s", "io_s", "wait_s", "os_s")}
        for lane, one, q in zip(self.run.lanes, self.run.thread_times, self.run.processor, strict=True):
            row = self.programs.index(lane.process.name)
            delay_s = 0.0 if self.run.is_preempted else one.delay_s
            own["wall_s"][row, q] += one.cpu_s + one.wait_s + delay_s
            own["cpu_s"][row, q] += one.cpu_s
            own["work_s"][row, q] += one.cpu_s + delay_s
            own["wait_s"][row, q] += one.wait_s
            own["os_s"][row, q] += delay_s + (one.wait_s if self.run.has_one_processor else 0.0)
            for (call, _), seconds in one.io_s.items():
                for name in ("wall_s", "work_s", "io_s"):
                    own[name][self._call_row(call), q] += seconds
        absent = ("work_s", "wait_s") if self.run.has_one_processor else ("cpu_s",)
        return {name: array for name, array in own.items() if name not in absent}

    def build_status(self) -> dict[str, Status]:
        """Return how sure each measure is: all but the wall time hang on what was seen at the samples."""
        return {name: "measured" if name == "wall_s" else "estimated" for name in self.build_measures()}

    def build_counts(self) -> dict[str, FloatArray]:
        """Return counts (regions, processors) of the programs: seconds with a core, switches, memory, bytes, calls."""
        found: dict[str, FloatArray] = defaultdict(lambda: self._make_zeros()[:, :, 0])
        seen: set[int] = set()
        for lane, one, q in zip(self.run.lanes, self.run.thread_times, self.run.processor, strict=True):
            at = self.programs.index(lane.process.name), q
            found[BUSY][at] += one.cpu_s + (0.0 if self.run.is_preempted else one.delay_s)
            found["switches.voluntary"][at] += lane.thread.switches[0]
            found["switches.involuntary"][at] += lane.thread.switches[1]
            if id(lane.process) in seen:
                continue
            seen.add(id(lane.process))
            found["memory.peak_resident_B"][at] = max(found["memory.peak_resident_B"][at], lane.process.peak_B)
            own = self.run.counters.get(id(lane.process))
            for name, value in own._asdict().items() if own else ():
                found[f"files.{name}"][at] += value
        return dict(found)

    def build_causes(self) -> Causes | None:
        """Return why time went into files: a row per call, file and processor.

        None where most of the calls could not be named: rules would take that for knowledge about them.
        """
        seconds = sum_by_call(self.run.thread_times)
        if not seconds or seconds.get(ON_DISK, 0.0) > _UNNAMED * sum(seconds.values()):
            return None
        return _merge_cause_rows(
            [row for number in range(len(self.run.lanes)) for row in self._build_cause_rows(number)]
        )

    def _build_cause_rows(self, number: int) -> list[_CauseRow]:
        """Return the rows of one lane; what a process read and wrote stands in those that took the longest."""
        lane, one, q = self.run.lanes[number], self.run.thread_times[number], self.run.processor[number]
        own = self.run.counters.get(id(lane.process))
        first = all(lane.process is not other.process for other in self.run.lanes[:number])
        moved = {_READING: (0, 0), _WRITING: (0, 0)}
        if own is not None and first:
            moved = {_READING: (own.reads, own.read_B), _WRITING: (own.writes, own.written_B)}
        rows = []
        for (call, target), seconds in sorted(one.io_s.items(), key=lambda item: -item[1]):
            kind = next((names for names in moved if call in names), None)
            count, size = moved.pop(kind) if kind else (0, 0)
            rows.append(
                _CauseRow(self._call_row(call), self.programs.index(lane.process.name), q, target, seconds, count, size)
            )
        return rows


@dataclass(frozen=True, slots=True)
class _CauseRow:
    call: int
    caller: int
    processor: int
    target: str | None
    seconds: float
    count: int
    bytes: int


def _merge_cause_rows(rows: Sequence[_CauseRow]) -> Causes:
    targets = list(dict.fromkeys(row.target for row in rows if row.target is not None))
    like = np.zeros(len(rows), dtype=np.int64)
    sizes = [(row.bytes // row.count).bit_length() if row.count else -1 for row in rows]
    return Causes(
        kinds=("file",),
        targets=tuple(notes.escape_undecodable(target) for target in targets),
        category=like + CAUSE_CATEGORIES.index("io"),
        kind=like,
        phase=like,
        call=np.array([row.call for row in rows], dtype=np.int64),
        caller=np.array([row.caller for row in rows], dtype=np.int64),
        processor=np.array([row.processor for row in rows], dtype=np.int64),
        partner=like - 1,
        target=np.array([-1 if row.target is None else targets.index(row.target) for row in rows], dtype=np.int64),
        size_class=np.array(sizes, dtype=np.int64),
        seconds=np.array([row.seconds for row in rows], dtype=np.float64),
        count=np.array([row.count for row in rows], dtype=np.int64),
        bytes=np.array([row.bytes for row in rows], dtype=np.int64),
    )
