"""Who did the work of a recorded run, and what each of them spent."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.collect import roles
from advisor.collect.thread_time_breakdown import ThreadTime, compute_own_counters, compute_thread_time
from advisor.model.errors import AdvisorError
from advisor.model.records import Processor

if TYPE_CHECKING:
    from advisor.collect.procfs import IoCounters
    from advisor.collect.records import Recording
    from advisor.collect.roles import Lane


@dataclass(frozen=True, slots=True)
class SampledRun:
    """The lanes of a recording with what each of them spent, and the processor as which it counts."""

    recording: Recording
    lanes: tuple[Lane, ...]
    thread_times: tuple[ThreadTime, ...]
    processor: tuple[int, ...]
    processors: tuple[Processor, ...]
    counters: dict[int, IoCounters]

    @property
    def has_one_processor(self) -> bool:
        """Whether there is one processor only, which waits for nobody."""
        return len(self.processors) == 1

    @property
    def cores(self) -> int:
        """The processors of the machine on which the program might run; 0 where that is not known."""
        return len(frozenset().union(*(lane.process.affinity for lane in self.lanes)))

    @property
    def is_preempted(self) -> bool:
        """Whether it was mostly other programs that kept this one from its cores.

        Its own threads keep each other from them only while all cores compute for them, (threads - cores) at a time.
        """
        computed_s = sum(one.cpu_s for one in self.thread_times)
        delayed_s = sum(one.delay_s for one in self.thread_times)
        beyond = max(len(self.processors) - self.cores, 0)
        return not beyond or delayed_s * self.cores > 2 * beyond * computed_s


def analyze_recording(recording: Recording) -> SampledRun:
    """Return who did the work of a run, and what each of them spent; raises ``AdvisorError`` if nobody was seen."""
    if not recording.processes:
        raise AdvisorError("no process of the program was to be seen under /proc, so there is nothing to advise on")
    lanes = tuple(roles.build_lanes(roles.select_applications(recording.processes)))
    places = sorted({(lane.rank, lane.number) for lane in lanes})
    processor = tuple(places.index((lane.rank, lane.number)) for lane in lanes)
    counters = compute_own_counters(recording.processes)
    found: list[ThreadTime] = []
    ends = [0.0] * len(places)
    for lane, q in zip(lanes, processor, strict=True):
        found.append(compute_thread_time(lane, ends[q], counters.get(id(lane.process)), len(places) == 1))
        ends[q] = found[-1].start_s + found[-1].life_s
    host = platform.node() or None
    starts = [min(one.start_s for one, p in zip(found, processor, strict=True) if p == q) for q in range(len(places))]
    processors = tuple(Processor(rank, number, host, starts[q], ends[q]) for q, (rank, number) in enumerate(places))
    return SampledRun(recording, lanes, tuple(found), processor, processors, counters)
