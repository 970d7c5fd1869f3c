"""Designing a benchmark suite: what it covers, which members are redundant, which few stand for all.

The paper's other use of centroids (its conclusions): a suite should cover the space of workloads without repeating it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray


@dataclass(frozen=True, slots=True)
class Coverage:
    """How near the nearest member of a suite is: to the average workload, to the worst one (its index)."""

    mean: float
    largest: float
    farthest: int


def compute_coverage(distances: FloatArray, suite: list[int], weights: FloatArray) -> Coverage:
    """Return how well the members ``suite`` cover all workloads of ``distances`` (n, n): 0 all in it, 1 none near.

    Each workload counts by its weight (n,), those without any not at all.
    """
    near = distances[:, suite].min(axis=1)
    farthest = int(np.where(weights > 0, near, -1.0).argmax())
    return Coverage(float(np.average(near, weights=weights)), float(near[farthest]), farthest)


def find_redundant(distances: FloatArray, suite: list[int], nearer_than: float) -> list[tuple[int, int, float]]:
    """Return members that another member stands for: (member, its stand-in, their distance), nearest pair first.

    A stand-in stays in the suite, so that leaving out all that are listed loses no more than ``nearer_than``.
    """
    pairs = sorted((float(distances[a, b]), a, b) for place, a in enumerate(suite) for b in suite[place + 1 :])
    left: set[int] = set()
    kept: set[int] = set()
    found = []
    for apart, first, second in pairs:
        if apart > nearer_than:
            break
        gone, stays = (second, first) if second not in kept else (first, second)
        if gone in left or stays in left or gone in kept:
            continue
        left.add(gone)
        kept.add(stays)
        found.append((gone, stays, apart))
    return found


def choose_representatives(distances: FloatArray, count: int, weights: FloatArray) -> list[int]:
    """Return ``count`` workloads that stand for all (n, n): the mean distance to the nearest of them is small.

    The mean weighs each workload (n,). Greedy choice, then exchanges of one member for another as long as they help
    (k-medoids, Kaufman and Rousseeuw).
    """
    n = len(distances)
    chosen: list[int] = []
    for _ in range(min(count, n)):
        chosen.append(
            min(
                (k for k in range(n) if k not in chosen), key=lambda k: _mean_distance(distances, [*chosen, k], weights)
            )
        )
    while (better := _find_exchange(distances, chosen, weights)) is not None:
        chosen = better
    return chosen


def _find_exchange(distances: FloatArray, chosen: list[int], weights: FloatArray) -> list[int] | None:
    cost = _mean_distance(distances, chosen, weights)
    for place in range(len(chosen)):
        for other in range(len(distances)):
            trial = [*chosen[:place], other, *chosen[place + 1 :]]
            if other not in chosen and _mean_distance(distances, trial, weights) < cost - 1e-12:
                return trial
    return None


def _mean_distance(distances: FloatArray, chosen: list[int], weights: FloatArray) -> float:
    return float(np.average(np.min(distances[:, chosen], axis=1), weights=weights))
