"""Counts of perf stat -> call paths of one region, the program: CPU times and counts of each rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.quality import HIDDEN
from advisor.formats import rank_numbers
from advisor.formats.perf.events import strip_modifiers
from advisor.formats.perf_stat.table import CLOCKS
from advisor.formats.sampled_cycles import note_clock_rate, read_clock_rate
from advisor.model.errors import InputError
from advisor.model.records import Note, Processor
from advisor.model.units import format_seconds, format_share
from advisor.support.launchers import find_launched_program
from advisor.support.stated_commands import state_command
from advisor.trace.callpaths.records import CallPathNode, CallPaths
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.formats.perf_stat.table import CountRow, CountTable

_SECONDS: Final = {"msec": 1e-3, "ns": 1e-9, "us": 1e-6, "s": 1.0, "sec": 1.0}
#: A process with several threads runs on more than one processor; up to this it is one.
_ONE: Final = 1.02
#: Events of a processor at work, by which its time is known where no clock was counted.
_CYCLES: Final = ("cycles", "cpu-cycles")
_CPU_CLOCKS: Final = frozenset({"task-clock", "cpu-clock", "user_time"})
#: How many times faster, or slower, than the usual a single processor may be.
_FASTEST: Final = 1.7
#: The elapsed time follows from the processors in use, printed to three digits: only where these are enough.
_ROUNDED: Final = 0.0005
_COARSE: Final = 0.02
PENALTIES: Final = {
    "few counts": 0.1,
    "order of ranks": 0.05,
    "events missing": 0.1,
    HIDDEN: 0.1,
    "counted part of the time": 0.05,
    "whole machine": 0.1,
    "table cut off": 0.1,
    "several runs": 0.1,
    "cycles without times": 0.1,
}


@dataclass(frozen=True, slots=True)
class _CountedProcess:
    """What one file says: values by event, None where not counted; seconds by clock; the run's time if known."""

    values: dict[str, float | None]
    seconds: dict[str, float]
    elapsed_s: float | None
    enabled_share: float
    is_system: bool
    by_cycles: bool = False


def build_call_paths(tables: Sequence[CountTable], path: Path) -> CallPaths:
    """Return the CPU times and counts of each rank; ``path`` names the run. Raises ``InputError``."""
    processes = [_sum_process(table) for table in tables]
    named = (
        rank_numbers.find_ranks_by_name([table.path.name for table in tables], [None] * len(tables))
        if len(tables) > 1
        else None
    )
    if len(tables) == 1:
        named = rank_numbers.find_ranks_by_name([table.path.name for table in tables], [None] * len(tables))
    ranks = named or list(range(len(tables)))
    processes = [process for _, process in sorted(zip(ranks, processes, strict=True), key=lambda pair: pair[0])]
    counts = _build_counts(processes)
    elapsed = [process.elapsed_s for process in processes]
    actual_s = None if None in elapsed else max(second for second in elapsed if second is not None)
    cpu = _cpu_seconds(processes, actual_s)
    alone = actual_s is not None and cpu is not None and _is_alone(tables) and not _has_threads(processes, actual_s)
    if not counts and cpu is None:
        raise InputError(path, "no event was counted: all of them are not supported or not counted")
    return CallPaths(
        program=_find_program(tables),
        run=path.name,
        reader="perf stat",
        parameters=state_command(tables[0].command) if len(tables) == 1 and not processes[0].is_system else {},
        processors=tuple(Processor(rank) for rank in sorted(ranks)),
        nodes=(CallPathNode("the program", Role.ROOT),),
        wall_s=np.array([[actual_s]]) if alone else None,
        cpu_s=None if cpu is None else np.array([cpu]),
        counts=counts,
        # A run time without anything that was measured in it tells nothing.
        actual_s=float("nan") if actual_s is None or cpu is None else actual_s,
        status="estimated",
        started=_find_start_time(tables),
        ranks_expected=None if named is None else max(named) + 1,
        notes=tuple(_build_notes(tables, processes, named is None, cpu is not None, actual_s)),
    )


def _sum_process(table: CountTable) -> _CountedProcess:
    """Return the totals of a file: rows of one event are of several processors or intervals."""
    intervals = [row.interval for row in table.rows if row.interval is not None]
    values: dict[str, float | None] = {}
    seconds: dict[str, float] = {}
    for row in table.rows:
        if row.value is None:
            values.setdefault(row.event, None)
            continue
        name = strip_modifiers(row.event)
        if name in CLOCKS and row.unit in _SECONDS:
            value = row.value * _SECONDS[row.unit]
            seconds[name] = (
                max(seconds.get(name, 0.0), value)
                if name == "duration_time" and not intervals
                else seconds.get(name, 0.0) + value
            )
        else:
            values[row.event] = (values.get(row.event) or 0.0) + row.value
    system = any(row.is_system for row in table.rows)
    enabled = min((row.enabled_share for row in table.rows if row.value is not None), default=1.0)
    elapsed_s = _find_elapsed(table.rows, seconds, intervals)
    cycles = next((values[event] for event in values if strip_modifiers(event) in _CYCLES), None)
    by_cycles = not system and bool(cycles) and not _CPU_CLOCKS & seconds.keys()
    if by_cycles and cycles:
        used_s = cycles / read_clock_rate("")
        at_work = elapsed_s is None or used_s * _FASTEST >= elapsed_s
        if at_work:  # one processor whose rate is not known, if it is not several
            seconds["task-clock"] = elapsed_s if elapsed_s and used_s <= _FASTEST * elapsed_s else used_s
        by_cycles = at_work
    return _CountedProcess(values, seconds, elapsed_s, enabled, system, by_cycles)


def _find_elapsed(rows: Sequence[CountRow], seconds: dict[str, float], intervals: list[float]) -> float | None:
    """Return the wall time: counted, of the last interval, or of CPU time and the processors in use on average."""
    if seconds.get("duration_time", 0.0) > 0:
        return seconds["duration_time"]
    if intervals:
        return max(intervals) or None
    clocks = [row for row in rows if row.cpus_utilized and row.value and row.unit in _SECONDS]
    if len({row.event for row in clocks}) < len(clocks):
        return None  # of single processors: what each used tells nothing of the time
    known = [
        row.value * _SECONDS[row.unit] / row.cpus_utilized
        for row in clocks
        if _COARSE * (row.cpus_utilized or 0) >= _ROUNDED and row.value and row.cpus_utilized
    ]
    return known[0] if known and known[0] > 0 else None


def _cpu_seconds(processes: Sequence[_CountedProcess], actual_s: float | None) -> list[float] | None:
    """Return the CPU seconds of each rank, in user code where that is known; None where it is not counted.

    Of a rank with threads they are its share of the run: that of all its threads of what these took together.
    """
    found = [_process_cpu_seconds(process) for process in processes]
    if None in found:
        return None
    cores = [max(_used_s(process) / actual_s, 1.0) if actual_s else 1.0 for process in processes]
    busy = [cores[rank] if cores[rank] > _ONE else 1.0 for rank in range(len(processes))]
    return [(seconds or 0.0) / share for seconds, share in zip(found, busy, strict=True)]


def _used_s(process: _CountedProcess) -> float:
    """Return the processor time that the threads of a process took together, 0 where it was not counted."""
    return process.seconds.get("task-clock", process.seconds.get("cpu-clock", 0.0))


def _has_threads(processes: Sequence[_CountedProcess], actual_s: float) -> bool:
    """Return whether a process was on more than one processor at a time."""
    return any(_used_s(process) > _ONE * actual_s for process in processes)


def _is_alone(tables: Sequence[CountTable]) -> bool:
    """Return whether it is known that there is one rank: one command that no launcher started."""
    words = tables[0].command.split()
    return len(tables) == 1 and bool(words) and find_launched_program(words) is None


def _process_cpu_seconds(process: _CountedProcess) -> float | None:
    """Return the CPU seconds of a process in user code, which some kernels know only in ticks; None if not counted."""
    if process.is_system:
        return None
    clock = process.seconds.get("task-clock", process.seconds.get("cpu-clock"))
    user = process.seconds.get("user_time", clock)
    return user if clock is None or user is None else min(user, clock)


def _build_counts(processes: Sequence[_CountedProcess]) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Return the counts (1, ranks) of the events that were counted on every rank, by their names."""
    known = [
        event for event in processes[0].values if all(process.values.get(event) is not None for process in processes)
    ]
    short = [strip_modifiers(event) for event in known]
    return {
        (name if short.count(name) == 1 else event): np.array([[process.values[event] or 0.0 for process in processes]])
        for event, name in zip(known, short, strict=True)
    }


def _find_program(tables: Sequence[CountTable]) -> str:
    """Return the program of the commands that were counted, nothing where they do not agree on it."""
    commands = [table.command.split() for table in tables]
    programs = {PurePath(words[find_launched_program(words) or 0]).name if words else "" for words in commands}
    return programs.pop() if len(programs) == 1 else ""


def _find_start_time(tables: Sequence[CountTable]) -> str | None:
    try:
        return min(datetime.strptime(table.started or "", "%a %b %d %H:%M:%S %Y") for table in tables).isoformat()
    except ValueError:
        return None


def _build_notes(
    tables: Sequence[CountTable],
    processes: Sequence[_CountedProcess],
    guessed: bool,
    has_cpu: bool,
    actual_s: float | None,
) -> Iterator[Note]:
    """Yield what counts of whole processes can't tell."""
    how = "counts are of whole processes: functions, communication and waiting are not told apart"
    yield Note("few counts", how, PENALTIES["few counts"], "perf record --call-graph dwarf ./PROGRAM")
    if any(process.by_cycles for process in processes) and actual_s is None:
        yield note_clock_rate("")
    elif any(process.by_cycles for process in processes):
        text = "no clock of the processor was counted: its cycles are those of processors that work all the time"
        yield Note("cycles without times", text, PENALTIES["cycles without times"], "perf stat ./PROGRAM")
    if any(table.is_cut for table in tables):
        text = "the table ends before the elapsed time: events may be missing"
        yield Note("table cut off", text, PENALTIES["table cut off"], "perf stat -o FILE ./PROGRAM")
    if others := sum(table.others for table in tables):
        text = f"the file holds {others + 1} tables of runs: this one is the longest"
        yield Note("several runs", text, PENALTIES["several runs"], "keep the table of one run")
    absent = sorted({event for process in processes for event, value in process.values.items() if value is None})
    if absent:
        yield Note("not counted", f"perf could not count {', '.join(absent)} everywhere; these are unknown")
    every = {event for process in processes for event in (*process.values, *process.seconds)}
    if uneven := sorted(e for e in every if any(e not in {*one.values, *one.seconds} for one in processes)):
        yield Note(
            "events missing", f"not in all files, and left out: {', '.join(uneven)}", PENALTIES["events missing"]
        )
    enabled = min(process.enabled_share for process in processes)
    if 0 < enabled < 0.995:
        text = f"events shared the counters, the least was counted {format_share(enabled)} of the time and scaled up"
        yield Note(
            "counted part of the time", text, PENALTIES["counted part of the time"], "perf stat with fewer events"
        )
    if any(process.is_system for process in processes):
        yield Note(
            "whole machine",
            "counts are of the whole machine or parts of it, other programs included",
            PENALTIES["whole machine"],
        )
    if guessed and len(tables) > 1:
        text = "the files name no ranks, so ranks are numbered in the order of their names: a guess"
        yield Note(
            "order of ranks", text, PENALTIES["order of ranks"], "perf stat -o stat.rank$OMPI_COMM_WORLD_RANK.csv"
        )
    if actual_s and _has_threads(processes, actual_s):
        most = max(map(_used_s, processes)) / actual_s
        text = f"in {format_seconds(actual_s)} up to {most:.3g} processors were used by a process"
        yield Note("several threads", f"{text}: threads are not told apart", 0.0, "perf record ./PROGRAM")
        yield Note(HIDDEN, "what threads wait for each other counts as work", PENALTIES[HIDDEN])
    elif has_cpu and len(processes) > 1:
        text = "processes may use the processor while they wait, so CPU time holds waiting"
        yield Note(HIDDEN, text, PENALTIES[HIDDEN])
    if actual_s is None:
        yield Note(
            "no run time", "the wall time was not counted", 0.0, "perf stat -e duration_time,task-clock,user_time"
        )
