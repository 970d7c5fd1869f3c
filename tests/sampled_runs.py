"""Recordings as sampling makes them, for the parts that need no real process."""

from __future__ import annotations

from itertools import count

from advisor.collect.procfs import IoCounters
from advisor.collect.records import BlockedCall, Process, Recording, Thread

_PIDS = count(1000)
NO_FILES = IoCounters(0, 0, 0, 0)


def thread(
    tid: int, start: float, end: float, cpu: float, *, system: float = 0.0, delay: float = 0.0,
    last: float | None = None, blocked: dict[BlockedCall, float] | None = None,
) -> Thread:  # fmt: skip
    """One thread; it was last seen at its end unless ``last`` says otherwise."""
    seen = end if last is None else last
    return Thread(
        tid, start, seen, end, cpu, system, delay, 10, {0}, (3, 4), dict(blocked or {})
    )  # fmt: skip


def process(
    name: str, start: float, end: float, cpu: float, *, rank: int | None = None, parent: int = 1, system: float = 0.0,
    delay: float = 0.0, blocked: dict[BlockedCall, float] | None = None, counters: IoCounters | None = NO_FILES,
    ranks: int | None = None, cpus: frozenset[int] = frozenset({0, 1}), last: float | None = None,
) -> Process:  # fmt: skip
    """One process with one thread."""
    pid = next(_PIDS)
    made = Process(pid, parent, 0.0, name, rank, ranks, cpus, name[:15], {}, counters, 1 << 20, end)
    made.threads[pid] = thread(pid, start, end, cpu, system=system, delay=delay, blocked=blocked, last=last)
    return made


def recording(
    *processes: Process, arguments: tuple[str, ...] = ("./app",), wall: float = 10.0, code: int = 0, samples: int = 200,
    used: float | None = None, longest: float = 0.06, sees_calls: bool = True, left: int = 0,
) -> Recording:  # fmt: skip
    """A run of these processes, all of whose CPU time was seen unless ``used`` says otherwise."""
    seen = sum(one.cpu_s for one in processes)
    return Recording(
        arguments, "2026-11-20T17:03:12+01:00", wall, code, seen if used is None else used, processes, samples, 0.05,
        longest, 0.08, sees_calls, left,
    )  # fmt: skip
