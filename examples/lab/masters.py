"""Phases in which one rank hands out the work."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lab.operations import ANY, Collective, Enter, Leave, Recv, Send, Work
from lab.patterns import Phase, computing

if TYPE_CHECKING:
    import numpy.typing as npt

    from lab.loads import Floats
    from lab.operations import Program
    from lab.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks(Phase):
    """Independent tasks, ``per_rank`` for each rank, whose costs differ by ``spread`` and grow by ``slope``.

    ``mode`` is "static" (equal numbers of tasks), "measured" (equal work), "demand" (workers ask the first rank for
    ``batch`` tasks at a time) or "counter" (all ranks take the next task by an atomic counter). Unless it ``works``,
    the first rank computes nothing. It spends ``result_s`` on each result, unless the workers do (``spread_results``).
    """

    per_rank: int = 8
    spread: float = 0.3
    slope: float = 0.0
    mode: str = "demand"
    works: bool = False
    batch: int = 1
    result_s: float = 0.0
    spread_results: bool = False
    size_B: int = 1024
    serve: str = "serve_workers"

    def regions(self) -> tuple[str, ...]:
        """Return the regions of workers and master."""
        return (self.name, self.serve)

    def costs(self, world: World, iteration: int) -> Floats:
        """Return the seconds of each task: together the work of all ranks, with what workers do of the results."""
        count = self.per_rank * world.ranks
        generator = np.random.default_rng([world.code.seed, iteration, count])
        cost = 1.0 + self.spread * generator.uniform(-1.0, 1.0, count)
        cost *= np.linspace(1.0 - self.slope, 1.0 + self.slope, count)
        cost *= self.work_s * world.ranks / cost.sum()
        return cost + (self.result_s if self.spread_results else 0.0)

    def body(self, world: World, rank: int, iteration: int) -> Program:
        """Yield the part of a rank."""
        costs = self.costs(world, iteration)
        if self.mode == "demand":
            steps = self._worker(world, rank, costs, iteration) if rank else self._master(world, len(costs), iteration)
            yield from steps
            return
        if self.mode == "counter":
            network = world.code.machine.network
            yield from computing(self.name, _taken(tuple(costs.tolist()), world.ranks, 2 * network.latency_s)[rank])
        else:
            yield Collective("MPI_Scatter", self.size_B, 0)
            yield from computing(self.name, self._part(costs, world, rank))
        yield Collective("MPI_Gather", self.size_B, 0)
        if rank == 0 and self.result_s and not self.spread_results:
            yield from computing(self.serve, self.result_s * len(costs))

    def _part(self, costs: Floats, world: World, rank: int) -> float:
        """Return the seconds of a rank's block of tasks."""
        first = 0 if self.works else 1
        if rank < first:
            return 0.0
        if self.mode == "measured":
            limits = self._measured_limits(world, world.ranks - first)
        else:
            limits = np.linspace(0, len(costs), world.ranks - first + 1).round().astype(int)
        return float(costs[limits[rank - first] : limits[rank - first + 1]].sum())

    def _measured_limits(self, world: World, parts: int) -> npt.NDArray[np.int64]:
        """Return where the tasks are cut, once for the whole run, so that parts have equal work over all iterations."""
        total = np.sum([self.costs(world, each) for each in range(world.code.iterations)], axis=0)
        wanted = np.linspace(0.0, total.sum(), parts + 1)[1:-1]
        limits: npt.NDArray[np.int64] = np.r_[0, np.searchsorted(np.cumsum(total) - total / 2, wanted), len(total)]
        return limits

    def _master(self, world: World, count: int, tag: int) -> Program:
        """Answer each request with the next tasks, or none; a request brings the results of the tasks before."""
        given, busy = 0, world.ranks - 1
        answered: set[int] = set()
        yield Enter(self.serve)
        while busy:
            worker = yield Recv(ANY, tag)
            assert worker is not None
            results = len(world.mail[worker]) if worker in answered else 0
            if self.result_s and results and not self.spread_results:
                yield Work(self.result_s * results)
            tasks = world.mail[worker] = range(given, min(given + self.batch, count))
            answered.add(worker)
            given += len(tasks)
            busy -= not tasks
            yield Send(worker, self.size_B if tasks else 0, tag)
        yield Leave(self.serve)

    def _worker(self, world: World, rank: int, costs: Floats, tag: int) -> Program:
        while True:
            yield Send(0, self.size_B, tag)
            yield Recv(0, tag)
            if not world.mail[rank]:
                return
            yield from computing(self.name, float(sum(costs[task] for task in world.mail[rank])))


@lru_cache(maxsize=64)
def _taken(costs: tuple[float, ...], ranks: int, fetch_s: float) -> tuple[float, ...]:
    """Return when each rank is done, where all take the next task when they are free."""
    free = [(0.0, rank) for rank in range(ranks)]
    ends = [0.0] * ranks
    for cost in costs:
        time, rank = free[0]
        ends[rank] = time + fetch_s + cost
        heapq.heapreplace(free, (ends[rank], rank))
    return tuple(ends)
