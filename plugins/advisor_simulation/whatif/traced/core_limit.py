"""How many ranks of a host progress at a time, as their computations show: of n that compute, never more than k.

Where ranks share k cores (or the bandwidth of a memory that k of them fill), each goes on at k / n of its speed while n
of them compute. So equal computations take longer the more ranks compute meanwhile, and what is the same each time is
not how long they last but their progress: the integral of min(1, k / n). Work that differs does the opposite: who has
more computes while the others wait already.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.support.grouping import iterate_groups, spread_medians

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import ReplayRows
    from advisor_simulation.whatif.traced.work import Unit

#: Ranks on a host, and computations of one kind, from which on they tell anything.
LEAST_RANKS: Final = 3
LEAST_COUNT: Final = 40
#: Computations that scatter less (standard deviation of the logarithm) have nothing to explain.
SCATTER: Final = 0.05
#: Progress scatters at most so much as time does where ranks share cores.
EXPLAINED: Final = 0.8
#: Longer or shorter by more than this factor is something else, and counts as this.
MOST: Final = 5.0
#: One rank at a time is how a chain of messages goes on, too.
LEAST_CORES: Final = 2
#: Numbers of cores that are tried, about.
TRIES: Final = 16


class CoreLimit(NamedTuple):
    """Never more than ``cores`` of the ``ranks`` of a host make progress; they need ``busy_s`` for that at least."""

    cores: int
    ranks: int
    busy_s: float


def find_core_limit(rows: ReplayRows, found: Sequence[Unit], hosts: IntArray) -> CoreLimit | None:
    """Return the limit of the host that is busy longest, None where no host has one.

    ``rows`` are the recorded ones, ``found`` all their units; ``hosts`` (ranks,) says which host each rank is on.
    """
    ended = rows.program.end_s
    if ended is None:
        return None
    parts = [_divide_by_host(rows, unit, hosts) for unit in found]
    nothing = np.zeros(0, dtype=np.int64)
    limits = []
    for host, ranks in iterate_groups(hosts):
        if len(ranks) >= LEAST_RANKS:
            kinds = [part.get(host, (nothing, nothing)) for part in parts]
            limits.append(_fit_limit(rows, kinds, ended, len(ranks)))
    return max((limit for limit in limits if limit is not None), key=lambda limit: limit.busy_s, default=None)


def _divide_by_host(rows: ReplayRows, unit: Unit, hosts: IntArray) -> dict[int, tuple[IntArray, IntArray]]:
    """Return the rows of a unit, by host, and the number of rank and pass that each is part of.

    The parts of a pass differ, passes are alike.
    """
    taking = rows.seconds[unit.at] > 0
    at = unit.at[taking]
    cell = rows.line[at] * (int(unit.turn.max(initial=0)) + 1) + unit.turn[taking]
    return {host: (at[mine], cell[mine]) for host, mine in iterate_groups(hosts[rows.line[at]])}


def _fit_limit(
    rows: ReplayRows, kinds: Sequence[tuple[IntArray, IntArray]], ended: FloatArray, ranks: int
) -> CoreLimit | None:
    every = np.concatenate([np.zeros(0, dtype=np.int64), *(at for at, _ in kinds)])
    end, seconds = ended[rows.key[every].astype(np.int64)], rows.seconds[every]
    stops = np.cumsum([0, *(len(at) for at, _ in kinds)])
    passes = []
    for first, stop, (at, cell) in zip(stops[:-1], stops[1:], kinds, strict=True):
        cells, head, inverse = np.unique(cell, return_index=True, return_inverse=True)
        one = _Passes(slice(first, stop), rows.line[at[head]], inverse.ravel())
        if len(cells) >= LEAST_COUNT and one.compute_scatter(seconds) >= SCATTER:
            passes.append(one)
    if not passes:
        return None
    weights = [len(one.line) for one in passes]
    time, active = _count_active(end - seconds, end)
    before = np.average([one.compute_scatter(seconds) ** 2 for one in passes], weights=weights)
    best = (np.inf, 0, 0.0)
    for count in np.unique(np.geomspace(LEAST_CORES, ranks - 1, TRIES).round().astype(int)).tolist():
        rate = np.minimum(1.0, count / np.maximum(active, 1))
        done = np.r_[0.0, np.cumsum(np.diff(time) * rate[:-1])]
        progress = np.interp(end, time, done) - np.interp(end - seconds, time, done)
        after = np.average([one.compute_scatter(progress) ** 2 for one in passes], weights=weights)
        best = min(best, (float(after), count, float(progress.sum()) / count))
    return CoreLimit(best[1], ranks, best[2]) if best[0] <= EXPLAINED**2 * before else None


class _Passes(NamedTuple):
    """The passes of a unit: its ``part`` of all computations, the rank of each pass, the pass of each computation."""

    part: slice
    line: IntArray
    number: IntArray

    def compute_scatter(self, values: FloatArray) -> float:
        """Return how the passes scatter in ``values`` of all computations."""
        total: FloatArray = np.bincount(self.number, values[self.part]).astype(np.float64)
        # How values scatter around the median of their rank: the standard deviation of the logarithm
        center, _ = spread_medians(self.line, total)
        ratio = total[center > 0] / center[center > 0]
        return float(np.log(np.clip(ratio, 1 / MOST, MOST)).std()) if len(ratio) else 0.0


def _count_active(start: FloatArray, end: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return when computations begin or end, and how many go on from then on."""
    time = np.r_[start, end]
    order = np.argsort(time, kind="stable")
    return time[order], np.cumsum(np.repeat([1, -1], len(start))[order])
