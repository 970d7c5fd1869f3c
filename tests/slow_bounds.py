"""The bounds by plain loops, from the formulas for ranks and threads, to compare with the fast way.

Shares no code with ``advisor``: rank R spends m[R] outside parallel regions and t[R, k] inside, on thread k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.records import Phase, Profile

Value = Callable[[int, int, int], float]


class SlowRun:
    """Sums over one profile; a quantity is a function of (row of the phase, processor, iteration)."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.ranks: dict[int, list[int]] = {}
        for number, processor in enumerate(profile.processors):
            self.ranks.setdefault(processor.rank, []).append(number)

    def own(self, phase: Phase, value: Value, processor: int, iteration: int) -> float:
        return sum(value(row, processor, iteration) for row in range(len(phase.regions)))

    def parts(self, phase: Phase, value: Value, rank: int, iteration: int) -> tuple[float, list[float]]:
        """m of a rank, and t of each of its threads."""
        alone, inside = 0.0, []
        for thread in self.ranks[rank]:
            busy = 0.0
            for row, region in enumerate(phase.regions):
                threaded = self.profile.regions[region].threaded
                if self.profile.processors[thread].thread == 0 and not threaded:
                    alone += value(row, thread, iteration)
                else:
                    busy += value(row, thread, iteration)
            inside.append(busy)
        return alone, inside

    def load(self, phase: Phase, value: Value, iteration: int) -> dict[int, float]:
        """m[R] + t[R, k] of each processor."""
        found = {}
        for rank, threads in self.ranks.items():
            alone, inside = self.parts(phase, value, rank, iteration)
            found |= {thread: alone + busy for thread, busy in zip(threads, inside, strict=True)}
        return found

    def mean(self, phase: Phase, value: Value, iteration: int) -> float:
        """Mean over ranks, weighted by their threads, of m + mean over threads of t."""
        total = 0.0
        for rank, threads in self.ranks.items():
            alone, inside = self.parts(phase, value, rank, iteration)
            total += len(threads) * (alone + sum(inside) / len(inside))
        return total / len(self.profile.processors)

    def highest(self, phase: Phase, value: Value, iteration: int) -> float:
        """Maximum over ranks of m + maximum over threads of t."""
        return max(
            alone + max(inside) for alone, inside in (self.parts(phase, value, r, iteration) for r in self.ranks)
        )


def slow_bounds(profile: Profile) -> dict[str, float]:
    """The bounds I to IPCOLMDSW of a profile with phases, CPU times and all measures."""
    run = SlowRun(profile)
    found = dict.fromkeys(("I", "IP", "IPC", "IPCO", "IPCOL", "IPCOLM", "IPCOLMD", "IPCOLMDS", "IPCOLMDSW"), 0.0)
    together = dict.fromkeys(range(len(profile.processors)), 0.0)
    for phase in profile.phases:
        arrays = phase.arrays

        def cpu(row: int, q: int, i: int, arrays: object = arrays) -> float:
            return float(arrays["cpu_s"][row, q, i])

        def moving(row: int, q: int, i: int, arrays: object = arrays) -> float:
            return float(arrays["cpu_s"][row, q, i] + arrays["transfer_s"][row, q, i])

        def work(row: int, q: int, i: int, arrays: object = arrays) -> float:
            return float(arrays["wall_s"][row, q, i] - arrays["wait_s"][row, q, i] - arrays["sync_s"][row, q, i])

        def sync(row: int, q: int, i: int, arrays: object = arrays) -> float:
            return float(arrays["sync_s"][row, q, i])

        alone: dict[int, float] = dict.fromkeys(together, 0.0)
        for i in range(phase.iterations):
            found["I"] += sum(run.own(phase, cpu, q, i) for q in together) / len(together)
            for name, value in (("IP", cpu), ("IPC", moving), ("IPCO", work)):
                serial = phase.kind == "serial"
                found[name] += run.highest(phase, value, i) if serial else run.mean(phase, value, i)
            highest = run.highest(phase, work, i)
            found["IPCOLMD"] += highest
            load, synchronizing = run.load(phase, work, i), run.load(phase, sync, i)
            decider = min(q for q, seconds in load.items() if seconds == max(load.values()))
            found["IPCOLMDS"] += synchronizing[decider]
            found["IPCOLMDSW"] += float(phase.duration_s[i])
            if phase.kind == "serial":
                found["IPCOL"] += highest
                found["IPCOLM"] += highest
            else:
                alone = {q: alone[q] + seconds for q, seconds in load.items()}
        if phase.kind != "serial":
            found["IPCOLM"] += max(alone.values())
            together = {q: together[q] + seconds for q, seconds in alone.items()}
    found["IPCOL"] += max(together.values())
    found["IPCOLMDS"] += found["IPCOLMD"]
    return found
