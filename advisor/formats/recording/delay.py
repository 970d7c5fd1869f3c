"""Time in which threads were ready to run and had no core: of the program's own making, or that of others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.recording.naming import NO_CORE_NAME
from advisor.model.records import Note
from advisor.model.units import format_share
from advisor.trace.recordings.layout import STATE

if TYPE_CHECKING:
    from advisor.formats.recording.contents import RecordedThread, Recording
    from advisor.model.records import Profile

#: The part of the run in which other programs held the cores.
OTHERS: Final = "other programs"
#: Share of the threads' time without a core, from which on the seconds are doubtful.
DISTURBING: Final = 0.05
_LEAST_PENALTY: Final = 0.2
_MOST_PENALTY: Final = 0.6
#: A thread computes where it used so much of its time.
_BUSY: Final = 0.02


def set_aside_delay(profile: Profile, recording: Recording) -> Profile:
    """Return the profile in which delay that other programs caused lies outside of the phases, with a note on it.

    Where the program's own threads are more than the cores they may use, the delay is theirs, and stays.
    """
    if shares_cores(recording):
        return profile
    rows = [number for number, region in enumerate(profile.regions) if region.name == NO_CORE_NAME]
    delay_s = np.zeros(len(profile.processors))
    phases = []
    for phase in profile.phases:
        mine = np.isin(phase.regions, rows)
        arrays = {}
        for name, values in phase.arrays.items():
            arrays[name] = values[~mine]
            if name == "wall_s":
                delay_s += values[mine].sum(axis=(0, 2))
        phases.append(replace(phase, regions=phase.regions[~mine], arrays=arrays))
    outside = {**profile.outside, OTHERS: delay_s} if rows else profile.outside
    return replace(profile, phases=tuple(phases), outside=outside, notes=(*profile.notes, *_note(recording)))


def shares_cores(recording: Recording) -> bool:
    """Return whether the program has more computing threads than cores, or several bound to the same ones."""
    threads: Counter[tuple[str, tuple[int, ...]]] = Counter()
    hosts: dict[str, set[int]] = {}
    for thread in recording.threads:
        cores = tuple(thread.process.affinity)
        if _is_busy(thread):
            threads[thread.process.host, cores] += 1
        hosts.setdefault(thread.process.host, set()).update(cores)
    crowded = any(cores and count > len(cores) for (_, cores), count in threads.items())
    busy: Counter[str] = Counter()
    for (host, _), count in threads.items():
        busy[host] += count
    return crowded or any(cores and busy[host] > len(cores) for host, cores in hosts.items())


def _is_busy(thread: RecordedThread) -> bool:
    span = thread.span
    if span.end_ns is None or span.end_cpu_ns is None:
        return True
    return span.end_cpu_ns - span.begin_cpu_ns > _BUSY * (span.end_ns - span.begin_ns)


def _note(recording: Recording) -> tuple[Note, ...]:
    """Return a note on how long all threads waited for a core, in calls and outside, where that disturbs."""
    queued = lived = 0
    for thread in recording.threads:
        states = thread.records[thread.records["kind"] == STATE]
        if len(states) > 1 and (states["size"] >= 0).all():
            queued += int(states["size"][-1] - states["size"][0])
            lived += int(states["start_ns"][-1] - states["start_ns"][0])
    share = queued / lived if lived else 0.0
    if share < DISTURBING:
        return ()
    text = f"other programs held the cores for {format_share(share)} of the time"
    penalty = min(max(share, _LEAST_PENALTY), _MOST_PENALTY)
    return (Note(OTHERS, text, penalty, "run it again on a machine that does nothing else"),)
