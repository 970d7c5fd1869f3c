"""Phases with threads: fork and join, schedules, serial stretches between parallel regions, locks."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lab.loads import Load
from lab.operations import Critical, Enter, Leave, Parallel, Work
from lab.patterns import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.operations import Program
    from lab.world import World

#: Seconds to take the next chunk of a loop.
TAKE_S: Final = 2e-7


def schedule(costs: Sequence[float], threads: int, kind: str, take_s: float = TAKE_S) -> list[float]:
    """Return the seconds of each thread for a loop whose chunks have these costs.

    ``static`` gives each thread a contiguous block with an equal number of chunks, the first ones one more where they
    are no multiple of it; ``dynamic`` gives the next chunk to the first free thread, at ``take_s`` a chunk.
    """
    count = len(costs)
    if kind == "static":
        size, more = divmod(count, threads)
        limits = [thread * size + min(thread, more) for thread in range(threads + 1)]
        return [sum(costs[limits[thread] : limits[thread + 1]]) for thread in range(threads)]
    free = [(0.0, thread) for thread in range(threads)]
    for cost in costs:
        time, thread = free[0]
        heapq.heapreplace(free, (time + take_s + cost, thread))
    return [time for time, thread in sorted(free, key=lambda each: each[1])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Team(Phase):
    """A loop of ``chunks`` by the threads of each rank, in ``forks`` parallel regions one after the other.

    ``skew`` spreads the work over the chunks. The share ``alone`` of the work is done by the first thread outside of
    parallel regions, and the share ``locked`` while holding a lock, in ``forks`` pieces each.
    """

    chunks: int = 64
    skew: Load = field(default_factory=Load)
    schedule: str = "static"
    forks: int = 1
    alone: float = 0.0
    locked: float = 0.0

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the parallel regions of a rank; its work is the time that one thread of it would need, by threads."""
        threads = world.code.threads
        seconds = world.seconds(self, rank, iteration) * threads
        shares = self.skew.shares(self.chunks, world.code.iterations)[:, iteration] / self.chunks
        own = seconds * (1.0 - self.alone - self.locked) / self.forks
        loop = schedule((shares * own).tolist(), threads, self.schedule)
        held = seconds * self.locked / self.forks / threads
        yield Enter(self.name)
        for number in range(self.forks):
            if self.alone:
                yield Work(seconds * self.alone / self.forks)
            place = f"{world.code.shape}.c:{400 + 100 * world.number(self) + number}"
            yield Parallel(place, tuple(_thread(part, held, place) for part in loop))
        yield Leave(self.name)


def _thread(seconds: float, held_s: float, place: str) -> Program:
    if held_s:
        yield Critical(place, held_s)
    yield Work(seconds)
