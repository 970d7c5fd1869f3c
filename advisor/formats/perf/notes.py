"""What should be known about sampled times: how exact they are, and what samples can't tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.analysis.quality import HIDDEN
from advisor.formats.perf.events import is_clock
from advisor.formats.perf.processes import ProgramThreads, count_samples
from advisor.formats.perf.sites import MPI_LIBRARY, CodeRegion
from advisor.formats.sampled_cycles import note_clock_rate
from advisor.model.lists import join_names
from advisor.model.records import FloatArray, Note
from advisor.model.units import format_count, format_seconds, format_share
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.perf.samples import PerfScript

PENALTIES: Final = {
    "sampled": 0.05,
    "few samples": 0.2,
    "hardly any samples": 0.5,
    HIDDEN: 0.1,
    "MPI told by library": 0.05,
    "order of ranks": 0.05,
    "threads or processes": 0.1,
    "samples lost": 0.2,
    "samples missing": 0.3,
    "file may be cut off": 0.1,
    "period estimated": 0.05,
    "blocked time not sampled": 0.05,
}
_FEW: Final = 100
#: With less of a thread, a region with half of the time is known to no better than a third of itself.
_HARDLY: Final = 20
#: From this share of the run on, time off the processors is worth a note.
_BLOCKED: Final = 0.1
_NAMED: Final = 4
_STACKS: Final = "perf record --call-graph dwarf -o perf.data.rank$OMPI_COMM_WORLD_RANK ./PROGRAM"


@dataclass(frozen=True, slots=True)
class SampledRun:
    """What the notes are about: files, threads, events that measure time, regions, seconds (regions, processors)."""

    scripts: tuple[PerfScript, ...]
    processes: ProgramThreads
    timing: frozenset[str]
    regions: frozenset[CodeRegion]
    wall_s: FloatArray
    actual_s: float | None
    truncated_files: list[str]


def build_notes(found: SampledRun) -> tuple[Note, ...]:
    """Return the notes on a sampled run."""
    return (*_note_samples(found), *_note_waiting(found), *_note_processes(found))


def _make_note(name: str, text: str, collect: str | None = None) -> Note:
    return Note(name, text, PENALTIES.get(name, 0.0), collect)


def _note_samples(found: SampledRun) -> Iterator[Note]:
    number = sum(count_samples(lane.thread) for lane in found.processes.lanes)
    each = len(found.processes.lanes)
    if found.wall_s.any():
        apart = float(found.wall_s.sum()) / number
        tenth = math.sqrt(10 * each / number)
        how = (
            f"{number:,} samples, one every {format_seconds(apart)} on a processor: a region with a tenth of the time "
        )
        yield _make_note("sampled", how + f"of a thread is known to some {format_share(min(tenth, 1.0))} of itself")
    if number < _FEW * each:
        how = f"only {format_count(number, 'sample')} of {format_count(each, 'thread')}"
        name = "few samples" if number >= _HARDLY * each else "hardly any samples"
        yield _make_note(name, how, "perf record -F 999, and a larger problem")
    clock = any(map(is_clock, found.timing)) and all(script.has_periods for script in found.scripts)
    if found.timing and not clock and found.actual_s is None:
        yield note_clock_rate(found.scripts[0].header.get("cpudesc", ""))
    elif found.timing and not clock:
        how = "what a sample stands for is the median time from one sample of a thread to the next"
        yield _make_note(
            "period estimated", how, "perf script -F comm,pid,tid,time,period,event,ip,sym,dso; or record cpu-clock"
        )
    if not found.timing:
        yield _make_note("no times", "no event measures time: record cpu-clock, task-clock or cycles as well")
    if found.truncated_files:
        names = join_names(found.truncated_files, _NAMED)
        yield _make_note("samples missing", f"{names}: the last sample is earlier than the header says")
    cut = [script.path.name for script in found.scripts if script.is_cut]
    if cut and not found.truncated_files:
        how = f"{join_names(cut, _NAMED)}: the file ends within a sample; others may be missing"
        yield _make_note("file may be cut off", how)
    if any(script.has_lost_samples for script in found.scripts):
        yield _make_note("samples lost", "perf says that it lost samples", "perf record with a lower frequency (-F)")


def _note_waiting(found: SampledRun) -> Iterator[Note]:
    """Yield what samples can't tell of communication and of time off the processors."""
    communicates = any(Role.INIT <= region.role <= Role.LOCAL for region in found.regions)
    ranks = len({lane.processor.rank for lane in found.processes.lanes})
    if ranks > 1 and not communicates:
        how = "no function of MPI was recognized, so communication and waiting count as work"
        yield _make_note(HIDDEN, how, _STACKS)
    if any(region.name == MPI_LIBRARY for region in found.regions):
        how = "for part of the samples in MPI the call is not known, only the library: communication of any kind"
        yield _make_note("MPI told by library", how, _STACKS)
    if found.actual_s and found.wall_s.any():
        first = [n for n, lane in enumerate(found.processes.lanes) if lane.processor.thread == 0]
        off = 1.0 - float(found.wall_s[:, first].sum()) / (found.actual_s * len(first))
        if off > _BLOCKED:
            how = f"first threads were off the processors for {format_share(off)} of the run, blocked or displaced"
            yield _make_note("blocked time not sampled", f"{how}: no sample tells where")


def _note_processes(found: SampledRun) -> Iterator[Note]:
    processes = found.processes
    if processes.ranks_guessed:
        how = "the files name no ranks, so ranks are numbered in the order of process ids: a guess"
        yield _make_note("order of ranks", how, "perf record -o perf.data.rank$OMPI_COMM_WORLD_RANK")
    if processes.processes_unknown:
        how = "process ids were not printed: threads with communication are taken for processes, others for threads"
        yield _make_note("threads or processes", how, "perf script -F comm,pid,tid,time,period,event,ip,sym,dso")
    if processes.other_programs:
        others = sorted(processes.other_programs.items(), key=lambda item: -item[1])
        names = join_names([f"{name} ({count:,} samples)" for name, count in others], _NAMED)
        yield _make_note("programs left out", f"left out: {names}")
    idle = sum(script.idle_samples for script in found.scripts)
    if idle:
        yield _make_note("idle processors", f"samples of idle processors, left out: {idle:,}")
    if processes.helper_threads:
        yield _make_note(
            "helper threads",
            f"left out: {format_count(processes.helper_threads, 'thread')} "
            f"with {format_count(processes.helper_samples, 'sample')}",
        )
