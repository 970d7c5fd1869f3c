"""Which processes of a tree are the application, and as which rank and thread each of them counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.support.launchers import LAUNCHERS

if TYPE_CHECKING:
    from advisor.collect.records import Process, Thread

#: Programs that start the ranks of MPI programs, and do nothing else.
STARTERS: Final = LAUNCHERS | {
    "mpiexec.hydra", "prte", "prted", "orted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy", "slurmstepd",
    "palsd",
}  # fmt: skip
#: Programs that run another one; they count where they run none.
WRAPPERS: Final = frozenset(
    {"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "csh", "tcsh", "time", "env", "nice", "nohup", "stdbuf",
     "setsid", "taskset", "numactl", "timeout", "sudo", "xargs", "make", "gmake", "ninja", "parallel"}
)  # fmt: skip
#: A process that has started others and used less than this share of their CPU time only looks after them.
_OVERSEER: Final = 0.1
#: Processes without a rank that did less than this share of what the busiest did are helpers, unless they run the
#: same program as a busy one.
_HELPER: Final = 0.01
#: Threads that used a processor for less than this share of their process's time are helpers, too.
_HELPING_THREAD: Final = 0.05
#: The kernel tells start times to a hundredth of a second.
_TICK_S: Final = 0.02


class Lane(NamedTuple):
    """A thread of an application process with the rank and the thread number as which it counts."""

    process: Process
    thread: Thread
    rank: int
    number: int


def select_applications(processes: Sequence[Process]) -> list[Process]:
    """Return the processes that do the program's work: those with a rank if there are any, without launchers."""
    ranked = [process for process in processes if process.rank is not None and process.name not in STARTERS]
    pool = ranked or list(processes)
    below = _sum_descendant_cpu(pool)
    chosen = [process for process in pool if not _starts_others(process, below)]
    if not ranked:
        chosen = _select_non_helpers(chosen)
    return chosen or pool


def _sum_descendant_cpu(pool: Sequence[Process]) -> dict[int, float]:
    """Return by process number the CPU time of all that a process has started, directly or not; those that did."""
    of_pid = {process.pid: process for process in pool}
    below: dict[int, float] = {}
    for process in pool:
        above, seen = process.parent, {process.pid}
        while above in of_pid and above not in seen:
            seen.add(above)
            below[above] = below.get(above, 0.0) + process.cpu_s
            above = of_pid[above].parent
    return below


def _starts_others(process: Process, below: dict[int, float]) -> bool:
    if process.name in STARTERS:
        return True
    if process.pid not in below:
        return False
    return process.name in WRAPPERS or process.cpu_s < _OVERSEER * below[process.pid]


def _select_non_helpers(chosen: Sequence[Process]) -> list[Process]:
    most = max((_active_seconds(process) for process in chosen), default=0.0)
    busy = {process.name for process in chosen if _active_seconds(process) >= _HELPER * most}
    return [process for process in chosen if process.name in busy]


def _active_seconds(process: Process) -> float:
    """Return the seconds of computation and of being blocked in files."""
    blocked = (
        seconds
        for thread in process.threads.values()
        for what, seconds in thread.blocked.items()
        if what.sort == "file"
    )
    return process.cpu_s + sum(blocked)


def select_working_threads(process: Process) -> list[Thread]:
    """Return the threads that work, in the order in which they were started; the first one if none does."""
    least = _HELPING_THREAD * ((process.end_s or 0.0) - process.main_thread.start_s)
    ordered = sorted(process.threads.values(), key=lambda thread: (thread.start_s, thread.tid))
    return [thread for thread in ordered if thread.cpu_s > least] or [process.main_thread]


def build_lanes(processes: Iterable[Process]) -> list[Lane]:
    """Return the threads that work, each with its rank and its number in the rank.

    Processes without a rank get one: those that run at the same time different ones, one that starts after another has
    ended that of the other. Threads likewise. What has ended was last seen up to an interval before: that is when
    its place is free, as a shell starts the next command at once.
    """
    ordered = sorted(processes, key=lambda process: (process.main_thread.start_s, process.pid))
    taken = {process.rank for process in ordered if process.rank is not None}
    free = _assign_places(
        [(process.main_thread.start_s, process.main_thread.last_s) for process in ordered if process.rank is None],
        taken,
    )
    of_rank: dict[int, list[Process]] = defaultdict(list)
    for process in ordered:
        of_rank[process.rank if process.rank is not None else free.pop(0)].append(process)
    return [lane for rank in sorted(of_rank) for lane in _build_rank_lanes(rank, of_rank[rank])]


def _build_rank_lanes(rank: int, processes: Sequence[Process]) -> list[Lane]:
    threads = [(process, thread) for process in processes for thread in select_working_threads(process)]
    threads.sort(key=lambda pair: pair[1].start_s)
    numbers = _assign_places([(thread.start_s, thread.end_s or 0.0) for _, thread in threads], ())
    return [Lane(process, thread, rank, number) for (process, thread), number in zip(threads, numbers, strict=True)]


def _assign_places(spans: Sequence[tuple[float, float]], taken: Collection[int | None]) -> list[int]:
    """Return for each span, in the order of their starts, the lowest place that no other holds at that time."""
    ends: dict[int, float] = {}
    found = []
    for start, end in spans:
        place = next((place for place in sorted(ends) if ends[place] <= start + _TICK_S), None)
        if place is None:
            place = next(n for n in range(len(taken) + len(ends) + 1) if n not in taken and n not in ends)
        ends[place] = end
        found.append(place)
    return found
