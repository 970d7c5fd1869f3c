"""Samples of one run -> call paths with estimated times: seconds on a processor by region, rank and thread."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.soundness import REGION_LIMIT
from advisor.formats.perf import events
from advisor.formats.perf.notes import SampledRun, build_notes
from advisor.formats.perf.processes import count_samples, find_main_program, find_processes, find_spoken_language
from advisor.formats.perf.sites import CodeRegion, find_site
from advisor.formats.rank_files import Origin, compare_origins, note_lengths
from advisor.formats.sampled_cycles import read_clock_rate
from advisor.model.errors import InputError
from advisor.support.stated_commands import state_recorded
from advisor.trace.callpaths.records import CallPathNode, CallPaths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from advisor.formats.perf.processes import ProgramThreads, ThreadLane
    from advisor.formats.perf.samples import PerfScript
    from advisor.model.records import FloatArray, Processor


#: Events that are counts of a profile by another name.
_COUNTS: Final = {"cpu-cycles": "cycles", "branch-instructions": "branches"}
_LAST: Final = re.compile(r"\d{1,12}\.\d{1,9}")
#: Times are printed to a microsecond.
_SAME: Final = 2e-6
#: By so many samples the run may be longer than the time from the first to the last.
_FENCE: Final = 1.01
#: So many characters of its name the kernel keeps of a process.
_COMM: Final = 15
_OTHERS: Final = CodeRegion("other functions")


@dataclass(frozen=True, slots=True)
class _SampleCells:
    """What was sampled, one row per thread, event and stack: node, processor, seconds or number, and which it is.

    ``count`` is the name of the count, empty for seconds; ``kernel`` whether the sample was taken in the kernel.
    """

    node: list[int]
    processor: list[int]
    value: list[float]
    count: list[str]
    kernel: list[bool]


def build_call_paths(scripts: Sequence[PerfScript], path: Path) -> CallPaths:
    """Return the seconds on a processor by region, and how often other events came; ``path`` names the run.

    Raises ``InputError`` where nothing was sampled that can be used.
    """
    processes = find_processes(scripts)
    names = {event for lane in processes.lanes for event, _ in lane.thread.weight}
    timing = events.select_time_events(names)
    rates = {event: _find_rate(scripts, processes, event) for event in timing}
    regions: dict[CodeRegion, int] = {}
    cells = _collect_cells(processes, {event: rate for event, rate in rates.items() if rate is not None}, regions)
    if not cells.node:
        raise InputError(path, "the samples have neither times nor periods that tell how long anything took")
    shape = (len(regions), len(processes.lanes))
    wall, user = (_sum_cells(cells, shape, "", kernel) for kernel in (True, False))
    timed = bool(wall.any())
    actual_s = _compute_span(processes)
    if actual_s is not None and timed:
        actual_s, scale = _fit_run(actual_s, wall, processes, is_exact=any(map(events.is_clock, timing)))
        wall, user = scale * wall, scale * user
    return CallPaths(
        program=processes.program,
        executable=_executable(scripts, processes.program),
        run=path.name,
        reader="perf",
        parameters=state_recorded(scripts[0].header.get("cmdline", ""), processes.program) if len(scripts) == 1 else {},
        processors=tuple(_build_processor(lane) for lane in processes.lanes),
        nodes=_build_nodes(regions),
        wall_s=wall if timed and actual_s is not None else None,
        cpu_s=user if timed else None,
        counts={name: _sum_cells(cells, shape, name, True) for name in sorted(set(cells.count) - {""})},
        actual_s=float("nan") if actual_s is None or not timed else actual_s,
        status="estimated",
        started=_find_start_time(scripts),
        cores=_find_cores(scripts),
        language=find_spoken_language(processes),
        ranks_expected=processes.ranks_expected,
        notes=(
            *build_notes(
                SampledRun(
                    tuple(scripts), processes, timing, frozenset(regions), wall, actual_s, _find_truncated(scripts)
                )
            ),
            *note_lengths(_measure_lengths(processes)),
            *compare_origins(_find_origins(scripts, processes)),
        ),
    )


def _find_origins(scripts: Sequence[PerfScript], processes: ProgramThreads) -> list[Origin]:
    """Return of which program each file is: one that holds nothing of the run's is of what it sampled most."""
    taken = {id(lane.script) for lane in processes.lanes}
    return [
        Origin(script.path.name, processes.program if id(script) in taken else find_main_program(script))
        for script in scripts
    ]


def _measure_lengths(processes: ProgramThreads) -> dict[str, float]:
    """Return the seconds from the first to the last sample of the longest thread of each file."""
    found: dict[int, tuple[float, str]] = {}
    for lane in processes.lanes:
        first, last = lane.thread.first, lane.thread.last
        if first is not None and last is not None and last > first:
            found[id(lane.script)] = max(found.get(id(lane.script), (0.0, "")), (last - first, lane.processor.name))
    return {name: seconds for seconds, name in found.values()}


def _find_rate(scripts: Sequence[PerfScript], processes: ProgramThreads, event: str) -> float | None:
    """Return the seconds of a period, of cycles without times those at the clock rate; None where nothing tells."""
    found = events.seconds_per_period(scripts, [lane.thread for lane in processes.lanes], event)
    if found is None and events.is_cycles(event) and all(script.has_periods for script in scripts):
        return 1 / read_clock_rate(scripts[0].header.get("cpudesc", ""))
    return found


def _collect_cells(processes: ProgramThreads, rates: dict[str, float], regions: dict[CodeRegion, int]) -> _SampleCells:
    """Return what was sampled, and fill ``regions`` with the regions and their numbers, callers first."""
    cells = _SampleCells([], [], [], [], [])
    sites: dict[int, dict[tuple[int, ...], tuple[int, bool]]] = {}
    for q, lane in enumerate(processes.lanes):
        known = sites.setdefault(id(lane.script), {})
        for (event, stack), (number, period) in lane.thread.weight.items():
            if stack not in known:
                region, kernel = find_site([lane.script.frames[place] for place in stack])
                known[stack] = _number_region(regions, region), kernel
            timing = event in rates
            name = events.strip_modifiers(event)
            cells.node.append(known[stack][0])
            cells.kernel.append(known[stack][1])
            cells.processor.append(q)
            cells.count.append("" if timing else _COUNTS.get(name, name))
            cells.value.append(period * rates[event] if timing else period if lane.script.has_periods else number)
    return cells


def _number_region(regions: dict[CodeRegion, int], region: CodeRegion) -> int:
    if region in regions:
        return regions[region]
    if len(regions) >= REGION_LIMIT - 3 and region != _OTHERS:
        return _number_region(regions, _OTHERS)
    if region.parent is not None:
        _number_region(regions, region.parent)
    return regions.setdefault(region, len(regions))


def _sum_cells(cells: _SampleCells, shape: tuple[int, int], count: str, kernel: bool) -> FloatArray:
    """Return one count, or seconds (nodes, processors); without what was sampled in the ``kernel`` if that is false."""
    table = np.zeros(shape)
    chosen = np.array([name == count for name in cells.count])
    if not kernel:
        chosen &= ~np.array(cells.kernel)
    at = (np.array(cells.node)[chosen], np.array(cells.processor)[chosen])
    np.add.at(table, at, np.array(cells.value)[chosen])
    return table


def _build_nodes(regions: dict[CodeRegion, int]) -> tuple[CallPathNode, ...]:
    return tuple(
        CallPathNode(region.name, region.role, parent=-1 if region.parent is None else regions[region.parent])
        for region in regions
    )


def _compute_span(processes: ProgramThreads) -> float | None:
    """Return the seconds from the first to the last sample; of processes on different clocks those of the longest."""
    spans = [
        (lane.thread.first, lane.thread.last)
        for lane in processes.lanes
        if lane.thread.first is not None and lane.thread.last is not None
    ]
    if len(spans) < len(processes.lanes):
        return None
    latest_first, earliest_last = max(first for first, _ in spans), min(last for _, last in spans)
    main = [
        (first, last) for (first, last), lane in zip(spans, processes.lanes, strict=True) if not lane.processor.thread
    ]
    together = latest_first <= earliest_last or len(main) == 1
    whole = max(last for _, last in spans) - min(first for first, _ in spans)
    longest = whole if together else max(last - first for first, last in spans)
    return longest if longest > 0 else None


def _fit_run(span: float, wall: FloatArray, processes: ProgramThreads, is_exact: bool) -> tuple[float, float]:
    """Return the seconds of the run, and what seconds on processors have to be multiplied with to fit in.

    A sample stands for the time before it, so the run began up to a sample before the first. No thread runs longer
    than the run: where the seconds of a sample are an estimate, the busiest thread shows that they are less.
    """
    busiest = int(wall.sum(axis=0).argmax())
    seconds = float(wall[:, busiest].sum())
    each = seconds / max(count_samples(processes.lanes[busiest].thread), 1)
    run = min(max(span, seconds), span + _FENCE * each)
    return run, 1.0 if is_exact or seconds <= run else run / seconds


def _find_truncated(scripts: Sequence[PerfScript]) -> list[str]:
    """Return the files whose last sample is earlier than perf says in front of them."""
    return [script.path.name for script in scripts if _is_truncated(script)]


def _is_truncated(script: PerfScript) -> bool:
    stated = _LAST.fullmatch(script.header.get("time of last sample", ""))
    last = max((thread.last for thread in script.threads.values() if thread.last is not None), default=None)
    return stated is not None and last is not None and last < float(stated[0]) - _SAME


def _executable(scripts: Sequence[PerfScript], program: str) -> str | None:
    """Return the file that is called like the program, of those whose functions were sampled."""
    files = {frame.object for script in scripts for frame in script.frames if frame.object and not frame.kernel}
    # the kernel keeps 15 characters of a name
    called = sorted(file for file in files if file.rpartition("/")[2][:_COMM] == program[:_COMM] and "/" in file)
    return called[0] if len(called) == 1 else None


def _build_processor(lane: ThreadLane) -> Processor:
    return replace(lane.processor, host=lane.script.header.get("hostname"))


def _find_cores(scripts: Sequence[PerfScript]) -> int | None:
    stated = {script.header.get("nrcpus online") for script in scripts}
    text = stated.pop() if len(stated) == 1 else None
    return int(text) if text and text.isdigit() and 0 < int(text) < 1_000_000 else None


def _find_start_time(scripts: Sequence[PerfScript]) -> str | None:
    found = []
    for script in scripts:
        try:
            found.append(datetime.strptime(script.header.get("captured on", ""), "%a %b %d %H:%M:%S %Y"))
        except ValueError:
            return None
    return min(found).isoformat() if found else None
