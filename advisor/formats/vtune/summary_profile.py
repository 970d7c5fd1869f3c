"""A summary of VTune -> a Profile: serial parts and parallel regions where VTune tells them, CPU time in the mean.

Of threads a summary tells sums alone. Computation is known in the mean then, imbalance and waiting are not, and stay
in one gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from advisor.formats.vtune.summary import LAST, Summary
from advisor.model.errors import InputError
from advisor.model.records import WAITING_UNKNOWN, FloatArray, Note, Phase, Processor, Profile, Region
from advisor.model.units import format_seconds

_MOST_THREADS: Final = 4096
_OTHERS: Final = "other functions"
_SERIAL, _PARALLEL = "outside parallel regions", "parallel regions"
#: Times are printed to a millisecond, and regions are sampled.
_SLACK: Final = 1.05
_SLACK_S: Final = 0.05
_ADDED_UP: Final = Note(
    "threads added up",
    "the summary adds the threads up: computation is known in the mean, imbalance and waiting are not",
    0.2,
    "vtune -collect threading -- ./PROGRAM; or gapwatch run -- ./PROGRAM",
)

_CUT: Final = Note(
    "summary cut off",
    "the summary does not get to what it states of the computer, which stands at its end",
    0.1,
    "vtune -report summary -result-dir RESULT > summary.txt",
)


def build_profile(summary: Summary, path: Path) -> Profile:
    """Return the run; raises ``InputError`` where the summary holds no times or they contradict each other."""
    elapsed_s = summary.find_seconds("Elapsed Time") or 0.0
    paused_s = summary.find_seconds("Paused Time") or 0.0
    if not elapsed_s > 0:
        raise InputError(path, "the summary states no elapsed time")
    cores = summary.find_cores()
    threads = max(min(summary.find_count("Total Thread Count") or 1, cores or _MOST_THREADS, _MOST_THREADS), 1)
    serial_s = summary.find_seconds("Serial Time (outside parallel regions)", "Serial Time")
    ideal_s = summary.find_seconds("Estimated Ideal Time")
    phases: tuple[Phase, ...]
    if serial_s is not None and ideal_s is not None:
        regions, phases = _divide_run(summary, path, elapsed_s, serial_s, ideal_s, threads)
    else:
        regions, phases = _add_up(summary, path, elapsed_s, threads)
    return Profile(
        program=(summary.metrics.get("Application Command Line", "").split() or [""])[0].strip('"').rsplit("/", 1)[-1],
        run=path.name,
        reader="vtune",
        actual_s=elapsed_s,
        processors=tuple(Processor(0, thread) for thread in range(threads)),
        regions=regions,
        phases=phases,
        status={"cpu_s": "estimated"},
        cores=cores,
        paradigms=("openmp",) if serial_s is not None and threads > 1 else (),
        notes=tuple(_describe(summary, elapsed_s, paused_s, threads)),
    )


def _divide_run(
    summary: Summary, path: Path, elapsed_s: float, serial_s: float, ideal_s: float, threads: int
) -> tuple[tuple[Region, ...], tuple[Phase, ...]]:
    """Return a serial phase and one of all parallel regions, in which threads compute as long as is ideal."""
    parallel_s = summary.find_seconds("Parallel Region Time")
    parallel_s = elapsed_s - serial_s if parallel_s is None else parallel_s
    if serial_s + parallel_s > elapsed_s * _SLACK + _SLACK_S or ideal_s > parallel_s * _SLACK + _SLACK_S:
        raise InputError(path, "serial and parallel time contradict the elapsed time")
    rows = _scale_hotspots(summary.serial_hotspots, serial_s, _SERIAL)
    first = np.zeros((len(rows), threads, 1))
    first[:, 0, 0] = [seconds for _, seconds in rows]
    every: FloatArray = np.full((1, threads, 1), ideal_s)
    regions = (*(Region(name) for name, _ in rows), Region(_PARALLEL, threaded=True))
    last = np.array([len(rows)])
    return regions, (
        Phase(_SERIAL, "serial", np.arange(len(rows)), {"cpu_s": first}, duration_s=np.array([serial_s])),
        Phase(_PARALLEL, "parallel", last, {"cpu_s": every}, duration_s=np.array([parallel_s])),
    )


def _scale_hotspots(hotspots: Sequence[tuple[str, float]], total_s: float, others: str) -> list[tuple[str, float]]:
    """Return functions with their seconds, and the others with what is left; hotspots hold time of spinning as well."""
    named_s = sum(seconds for _, seconds in hotspots)
    scale = min(total_s / named_s, 1.0) if named_s > 0 else 1.0
    return [*((name, seconds * scale) for name, seconds in hotspots), (others, max(total_s - named_s * scale, 0.0))]


def _add_up(
    summary: Summary, path: Path, elapsed_s: float, threads: int
) -> tuple[tuple[Region, ...], tuple[Phase, ...]]:
    """Return one phase with the CPU time of the functions that took most, and of the others, shared by the threads."""
    effective_s = summary.find_seconds("Effective Time", "CPU Time")
    if effective_s is None:
        raise InputError(path, "the summary states no CPU time: vtune -collect hotspots, threading or hpc-performance")
    if effective_s > elapsed_s * threads * _SLACK + _SLACK_S:
        raise InputError(path, f"{format_seconds(effective_s)} of CPU time are more than {threads} threads can take")
    rows = _scale_hotspots(summary.hotspots, effective_s, _OTHERS)
    cpu = np.array([[seconds / threads] * threads for _, seconds in rows])[:, :, None]
    regions = tuple(Region(name) for name, _ in rows)
    return regions, (Phase("the whole run", "whole", np.arange(len(rows)), {"cpu_s": cpu}),)


def _describe(summary: Summary, elapsed_s: float, paused_s: float, threads: int) -> Iterator[Note]:
    yield Note(WAITING_UNKNOWN, "what threads wait is not in a summary of VTune", 0.1)
    if threads > 1:
        yield _ADDED_UP
    for name, words in (("Spin Time", "spin, waiting for each other"), ("Overhead Time", "start and manage threads")):
        spent = summary.find_seconds(name)
        if spent and spent / threads > 0.01 * elapsed_s:
            yield Note(name.lower(), f"{format_seconds(spent)} of CPU time of all threads {words}")
    gain = summary.find_seconds("OpenMP Potential Gain")
    if gain and gain > 0.01 * elapsed_s:
        yield Note("OpenMP potential gain", f"VTune: perfectly balanced regions would save {format_seconds(gain)}")
    wait = summary.find_seconds("Wait Time with poor CPU Utilization", "Inactive Wait Time with poor CPU Utilization")
    if wait and wait > 0.01 * elapsed_s:
        yield Note("wait time", f"threads wait {format_seconds(wait)} altogether while few CPUs are in use")
    if LAST not in summary.metrics:
        yield _CUT
    if paused_s > 0:
        yield Note("collection paused", f"VTune was paused for {format_seconds(paused_s)} of the run", 0.1)
