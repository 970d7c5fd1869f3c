"""Time in which threads were ready to run and had no core: of the program's own making, or that of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.analysis.disturbance import IO_DELAY, LONGEST_DELAY, QUEUE_DELAY, TAKEN, describe_disturbance, taken_share
from advisor.formats.recording.formatted_io import list_readings
from advisor.formats.recording.recorded_threads import RecordedThread, map_processors
from advisor.model.records import OTHER_PROGRAMS, FloatArray, Note, Phase, Profile
from advisor.model.units import format_share
from advisor.trace.events import Role
from advisor.trace.recordings.layout import CALL, STATE
from advisor.trace.regions import NO_CORE_NAME, classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.formats.recording.contents import Recording
    from advisor.trace.recordings.processes import Process

#: Share of the threads' time without a core, from which on the seconds are doubtful.
DISTURBING: Final = 0.05
_LEAST_PENALTY: Final = 0.1
#: What is measured by CPU clocks holds on a busy machine, too.
_MOST_PENALTY: Final = 0.35
#: Where the kernel does not tell how long a thread was ready to run, it wants a core in a piece of the run in which it
#: uses so much of the time that the busiest one uses.
_BUSY: Final = 0.2
#: What looks after the others, and hardly computes, crowds no core.
_BESIDE: Final = 0.25
#: So many pieces, each long enough for all threads to have their turns on shared cores.
_PIECES: Final = 50
_SHORTEST_PIECE_NS: Final = 50e6
#: The part of all computation that is done while more threads compute than there are cores.
_CROWDED: Final = 0.25


def set_aside_delay(profile: Profile, recording: Recording) -> Profile:
    """Return the profile in which delay that other programs caused lies outside of the phases, with a note on it.

    A phase is taken to last as long as it would have without the longest delay in it. Where the program's own threads
    are more than the cores they may use, the delay is theirs, and stays, beside what others took of the cores.
    """
    queue_s, io_s = _queue_delay(profile, recording)
    if shares_cores(recording):
        tables = {name: np.zeros((len(profile.regions), len(profile.processors))) for name in (QUEUE_DELAY, IO_DELAY)}
        tables[QUEUE_DELAY][_own_row(profile)], tables[IO_DELAY][_own_row(profile)] = queue_s, io_s
        found = replace(profile, counts={**profile.counts, **tables, **_count_taken(profile, recording)})
        return replace(found, notes=(*profile.notes, *_note_taken(found, recording.processes[0].cores)))
    rows = [number for number, region in enumerate(profile.regions) if region.name == NO_CORE_NAME]
    delay_s = np.zeros(len(profile.processors))
    longest_s = 0.0
    phases = []
    for phase in profile.phases:
        mine = np.isin(phase.regions, rows)
        if "wall_s" not in phase.arrays or not mine.any():
            phases.append(phase)
            continue
        delay = phase.arrays["wall_s"][mine].sum(axis=0)
        delay_s += delay.sum(axis=1)
        longest_s += float(delay.max(axis=0).sum())
        arrays = {name: values[~mine] for name, values in phase.arrays.items()}
        phases.append(
            _shorten_instances(replace(phase, regions=phase.regions[~mine], arrays=arrays), delay.max(axis=0))
        )
    outside = {**profile.outside, OTHER_PROGRAMS: delay_s} if rows else profile.outside
    counts = {
        **profile.counts,
        **_delay_counts(profile, queue_s, longest_s, delay_s),
        **_count_taken(profile, recording),
    }
    counts[IO_DELAY] = np.zeros_like(counts[QUEUE_DELAY])
    counts[IO_DELAY][_own_row(profile)] = io_s
    found = replace(profile, phases=tuple(phases), outside=outside, counts=counts)
    return replace(found, notes=(*profile.notes, *_note(found, recording)))


def _shorten_instances(phase: Phase, longest_s: FloatArray) -> Phase:
    """Return a phase whose instances last shorter by the longest delay in them, but as long as their work."""
    if phase.duration_s is None:
        return phase
    own = phase.arrays["wall_s"].sum(axis=0)
    waited = sum((phase.arrays[name].sum(axis=0) for name in ("wait_s",) if name in phase.arrays), np.zeros_like(own))
    least = np.minimum((own - waited).max(axis=0), phase.duration_s)
    return replace(phase, duration_s=np.maximum(phase.duration_s - longest_s, least))


def _queue_delay(profile: Profile, recording: Recording) -> tuple[FloatArray, FloatArray]:
    """Return the run-queue delay of each processor, of all its time and of its input and output, seconds."""
    found = np.zeros(len(profile.processors))
    in_io = np.zeros(len(profile.processors))
    columns = map_processors(profile)
    for thread in recording.threads:
        q = columns.get((thread.rank, thread.processor))
        states = thread.records[thread.records["kind"] == STATE]
        if q is not None and len(states) > 1 and (states["size"] >= 0).all():
            found[q] += max(int(states["size"][-1]) - int(states["size"][0]), 0) / 1e9
            in_io[q] += _delay_in_io(thread, states)
    return found, in_io


def _delay_in_io(thread: RecordedThread, states: npt.NDArray[Any]) -> float:
    """Return for how long at most calls for input and output had no core, seconds.

    The kernel's run-queue delay is read every 20 ms at most, and whenever the thread was off its core: what it grew by
    between two readings was in such calls for no longer than these took there.
    """
    names = thread.process.functions
    numbers = [number for number, name in names.items() if classify_region(name)[1] == Role.IO]
    records = thread.records
    calls = records[(records["kind"] == CALL) & (records["end_ns"] > 0) & np.isin(records["function"], numbers)]
    if not len(calls):
        return 0.0
    order = np.argsort(calls["start_ns"], kind="stable")
    end = np.maximum.accumulate(calls["end_ns"][order].astype(np.int64))
    start = np.maximum(
        calls["start_ns"][order].astype(np.int64), np.r_[0, end[:-1]]
    )  # calls inside of others count once
    length = np.maximum(end - start, 0)
    until = np.cumsum(length)
    at = np.searchsorted(start, states["start_ns"].astype(np.int64), side="right")
    moment = states["start_ns"].astype(np.int64)
    before = np.r_[0, until][at] - np.where(at > 0, np.maximum(end[at - 1] - moment, 0), 0)
    grown = np.diff(states["size"].astype(np.int64))
    return float(np.minimum(np.maximum(grown, 0), np.maximum(np.diff(before), 0)).sum()) / 1e9


def _delay_counts(
    profile: Profile, queue_s: FloatArray, longest_s: float, delay_s: FloatArray
) -> dict[str, FloatArray]:
    """Return the delays as counts; delay in calls adds to what is known of each phase, as nobody knows where it was."""
    row = _own_row(profile)
    counts = {name: np.zeros((len(profile.regions), len(profile.processors))) for name in (LONGEST_DELAY, QUEUE_DELAY)}
    counts[QUEUE_DELAY][row] = queue_s
    counts[LONGEST_DELAY][row, 0] = longest_s + float(np.maximum(queue_s - delay_s, 0.0).max())
    return counts


def _count_taken(profile: Profile, recording: Recording) -> dict[str, FloatArray]:
    """Return the seconds of all cores that went to others than the run, in the column of each host's first process."""
    hosts: dict[str, list[Process]] = {}
    for process in recording.processes:
        hosts.setdefault(process.host, []).append(process)
    table = np.zeros((len(profile.regions), len(profile.processors)))
    for processes in hosts.values():
        first = processes[0]
        if first.machine_begin is None or first.machine_end is None:
            return {}
        busy = first.machine_end - first.machine_begin
        own = sum(process.used_s for process in processes)
        column = next((q for q, one in enumerate(profile.processors) if one.rank == (first.rank or 0)), 0)
        table[_own_row(profile), column] = max(busy - own, 0.0)
    return {TAKEN: table}


def _own_row(profile: Profile) -> int:
    return next((number for number, region in enumerate(profile.regions) if region.name == profile.program), 0)


def shares_cores(recording: Recording) -> bool:
    """Return whether more threads compute at a time than there are cores, or than the cores that they are bound to.

    Threads that mostly wait for others, or come after them, take no core from anybody.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[RecordedThread]] = {}
    hosts: dict[str, set[int]] = {}
    for thread in recording.threads:
        cores = tuple(thread.process.affinity)
        groups.setdefault((thread.process.host, cores), []).append(thread)
        hosts.setdefault(thread.process.host, set()).update(cores)
    crowded = any(cores and are_crowded(threads, len(cores)) for (_, cores), threads in groups.items())
    on_host = ([thread for thread in recording.threads if thread.process.host == host] for host in hosts)
    return crowded or any(
        cores and are_crowded(threads, len(cores)) for cores, threads in zip(hosts.values(), on_host, strict=True)
    )


def are_crowded(threads: Sequence[RecordedThread], cores: int) -> bool:
    """Return whether more of these threads than ``cores`` want one during a good part of what they compute together.

    The run is looked at in pieces. A thread wants a core while it computes or is ready to, and not while it waits for
    others, such as the one that has the interpreter of Python.
    """
    if len(threads) <= cores:
        return False
    readings = [list_readings(thread) for thread in threads]
    begin = min(float(time[0]) for time, _ in readings)
    end = max(float(time[-1]) for time, _ in readings)
    pieces = int(min(max((end - begin) / _SHORTEST_PIECE_NS, 1), _PIECES))
    edges = np.linspace(begin, end, pieces + 1)
    used = np.array([np.diff(np.interp(edges, time, cpu)) for time, cpu in readings])
    queued = [_queued_until(thread, edges) for thread in threads]
    ready = np.array([np.zeros(pieces) if delay is None else np.diff(delay) for delay in queued])
    wanting = np.minimum((used + ready) / np.diff(edges), 1.0)
    unknown = np.array([delay is None for delay in queued])
    wanting[unknown] = ((used >= _BUSY * used.max(axis=0)) & (used > 0))[unknown]
    together = used.sum(axis=0)
    crowd = together[wanting.sum(axis=0) > cores + _BESIDE].sum()
    return bool(crowd >= _CROWDED * together.sum() > 0)


def _queued_until(thread: RecordedThread, time_ns: FloatArray) -> FloatArray | None:
    """Return the run-queue delay of a thread up to some moments, nanoseconds; None where the kernel did not tell."""
    states = thread.records[(thread.records["kind"] == STATE) & (thread.records["size"] >= 0)]
    if len(states) < 2:
        return None
    queued: FloatArray = np.interp(time_ns, states["start_ns"].astype(np.float64), states["size"].astype(np.float64))
    return queued


def _note(profile: Profile, recording: Recording) -> tuple[Note, ...]:
    """Return a note on how long threads waited for a core, in calls and outside, where that disturbs."""
    queued = float(profile.counts[QUEUE_DELAY].sum())
    lived = sum((thread.span.end_ns or 0) - thread.span.begin_ns for thread in recording.threads if thread.span.end_ns)
    share = queued / (lived / 1e9) if lived else 0.0
    if share < DISTURBING:
        return ()
    text = f"other programs held the cores for {format_share(share)} of the time"
    if len(profile.processors) > 1:
        text += f": {describe_disturbance(float(profile.counts[LONGEST_DELAY].sum()))}; computation is measured without"
    return (_make_note(text, share),)


def _note_taken(profile: Profile, cores: int) -> tuple[Note, ...]:
    """Return a note on what others took of cores that the program's own threads share, where that disturbs."""
    share = min(taken_share(replace(profile, cores=cores)) or 0.0, 1.0)
    if share < DISTURBING:
        return ()
    return (_make_note(f"other programs had {format_share(share)} of the cores, which its own threads share", share),)


def _make_note(text: str, share: float) -> Note:
    penalty = min(max(share, _LEAST_PENALTY), _MOST_PENALTY)
    return Note(OTHER_PROGRAMS, text, penalty, "run it again on a machine that does nothing else")
