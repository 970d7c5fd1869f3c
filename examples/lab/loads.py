"""How the work of a phase is spread over ranks and iterations, and what remedies make of it.

A load is an array of shares (ranks, iterations). The mean over the ranks is 1 in every iteration, so that a
distribution moves work and never makes any.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Pieces of a rank's work that are handed out on demand.
PIECES: Final = 16
KINDS: Final = ("equal", "linear", "heavy", "quarter", "fixed", "random", "wandering", "growing", "moving")


@dataclass(frozen=True, slots=True)
class Load:
    """A distribution of work: ``strength`` is how much more than the mean the busiest rank has, at its worst.

    ``remedy`` is "" (as it is), "measured" (one factor for each rank, by what was measured), "demand" (pieces go to
    whoever is free) or "repeated" (cut anew every ``period`` iterations by the loads of the period before).
    """

    kind: str = "equal"
    strength: float = 0.0
    seed: int = 0
    remedy: str = ""
    period: int = 5

    def shares(self, ranks: int, iterations: int, slowness: Floats | None = None) -> Floats:
        """Return the seconds of each rank in each iteration, for a mean work of one; slow ranks need longer."""
        slow = np.ones(ranks) if slowness is None else slowness
        work = self.original(ranks, iterations)
        if self.remedy == "measured":
            return _measured(work, slow) * slow[:, None]
        if self.remedy == "demand":
            return np.stack([_on_demand(column, slow) for column in work.T], axis=1)
        if self.remedy == "repeated":
            return self._repeated(work, slow) * slow[:, None]
        return work * slow[:, None]

    def original(self, ranks: int, iterations: int) -> Floats:
        """Return the shares before any remedy."""
        generator = np.random.default_rng([self.seed, KINDS.index(self.kind)])
        excess = np.zeros((ranks, iterations))
        if ranks == 1 or self.strength == 0:
            return excess + 1.0
        one = int(generator.integers(ranks))
        if self.kind == "linear":
            excess += np.linspace(-1.0, 1.0, ranks)[:, None]
        elif self.kind == "heavy":
            excess[one] = 1.0
        elif self.kind == "quarter":
            excess[generator.permutation(ranks)[: max(ranks // 4, 1)]] = 1.0
        elif self.kind == "fixed":
            excess += generator.uniform(-1.0, 1.0, ranks)[:, None]
        elif self.kind == "random":
            excess += generator.uniform(-1.0, 1.0, (ranks, iterations))
        elif self.kind == "wandering":
            excess[(one + np.arange(iterations) * (1 + ranks // 3)) % ranks, np.arange(iterations)] = 1.0
        elif self.kind == "growing":
            excess[one] = np.linspace(0.0, 1.0, iterations)
        elif self.kind == "moving":
            at = np.linspace(0.0, ranks - 1.0, iterations)
            excess += np.maximum(1.0 - np.abs(np.arange(ranks)[:, None] - at) / max(ranks / 4, 1.5), 0.0)
        excess -= excess.mean(axis=0)
        largest = np.abs(excess.max(axis=0)).max()
        excess = excess * (self.strength / largest) if largest > 0 else excess
        shares: Floats = np.maximum(1.0 + excess, 0.0)
        shares /= shares.mean(axis=0)
        return shares

    def _repeated(self, work: Floats, slow: Floats) -> Floats:
        """Return the work after each cut: the first period is as it was."""
        cut = work.copy()
        for begin in range(self.period, work.shape[1], self.period):
            before = work[:, begin - self.period : begin].sum(axis=1) * slow
            now = slice(begin, begin + self.period)
            factor = np.divide(before.mean(), before, out=np.ones_like(before), where=before > 0)
            part = work[:, now] * factor[:, None]
            cut[:, now] = part * (work[:, now].sum() / part.sum())
        return cut


def _measured(work: Floats, slow: Floats) -> Floats:
    """Return the work with one factor for each rank, such that all need the same time in the whole run.

    Who had nothing gets its part of each iteration.
    """
    total = work.sum(axis=1)
    if (total < 0.01 * total.mean()).any():
        return np.broadcast_to(work.mean(axis=0) * (1.0 / slow / (1.0 / slow).mean())[:, None], work.shape)
    factor = 1.0 / (total * slow)
    cut: Floats = work * (factor * (work.sum() / (total * factor).sum()))[:, None]
    return cut


def _on_demand(work: Floats, slow: Floats) -> Floats:
    """Return when each rank is done, where all take the next piece of ``work`` when they are free."""
    free = [(0.0, rank) for rank in range(len(work))]
    ends = np.zeros(len(work))
    for piece in np.repeat(work / PIECES, PIECES):
        time, rank = free[0]
        ends[rank] = time + piece * slow[rank]
        heapq.heapreplace(free, (ends[rank], rank))
    return ends
