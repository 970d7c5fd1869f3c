"""What sampling collects: one record per process and thread, added to at every sample, and the finished recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from advisor.collect.procfs import IoCounters

#: What a blocked thread waits for: a file, input that another process has to write, or something else.
Sort = Literal["file", "input", "other"]
UNKNOWN: Final = "unknown"


class BlockedCall(NamedTuple):
    """What a thread was blocked in: the call, and the file where it is one."""

    sort: Sort
    call: str
    target: str | None = None


@dataclass(slots=True)
class Thread:
    """One thread; times in seconds since the program was started, CPU times since the thread was.

    ``blocked`` weighs what the thread was seen blocked in by the seconds between the samples, ``in_call`` is the last
    of that; ``delay_s`` is the time for which it could have run and had no processor.
    """

    tid: int
    start_s: float
    last_s: float
    end_s: float | None = None
    cpu_s: float = 0.0
    system_s: float = 0.0
    delay_s: float = 0.0
    samples: int = 0
    cpus: set[int] = field(default_factory=set)
    switches: tuple[int, int] = (0, 0)
    blocked: dict[BlockedCall, float] = field(default_factory=dict)
    in_call: BlockedCall | None = None

    @property
    def tail_factor(self) -> float:
        """What times up to the last sample are multiplied with to reach up to the end, as if all went on alike."""
        seen_s = self.last_s - self.start_s
        return ((self.end_s or self.last_s) - self.start_s) / seen_s if seen_s > 0 else 1.0


@dataclass(slots=True)
class Process:
    """One process of the program's tree, with its threads by number, the first one first."""

    pid: int
    parent: int
    started_s: float
    name: str
    rank: int | None
    ranks: int | None
    affinity: frozenset[int]
    command: str
    threads: dict[int, Thread] = field(default_factory=dict)
    counters: IoCounters | None = None
    peak_B: int = 0
    end_s: float | None = None

    @property
    def main_thread(self) -> Thread:
        """The thread with which the process began."""
        return self.threads[self.pid]

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all threads that were seen."""
        return sum(thread.cpu_s for thread in self.threads.values())


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of a program as it was sampled.

    ``wall_s`` is from its start to its end; ``code`` its exit status, negative for a signal. ``interval_s`` is what was
    asked for, ``longest_s`` the longest time between two samples; ``cost_s`` is the CPU time of sampling. ``used_s`` is
    the CPU time of the program and of all its descendants that were waited for, as the kernel counted it.
    """

    arguments: tuple[str, ...]
    started: str
    wall_s: float
    code: int
    used_s: float
    processes: tuple[Process, ...]
    samples: int
    interval_s: float
    longest_s: float
    cost_s: float
    sees_calls: bool
    left_running: int
