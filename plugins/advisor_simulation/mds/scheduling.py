"""Scheduling: which processor does which index of a parallel loop, and how often work was handed out.

Policies: ``static`` follows the decomposition, ``chunk`` deals chunks round robin, ``dynamic`` hands a chunk to
whoever is free first, ``self`` one index at a time, ``guided`` what is left divided by P, ``affinity`` lets each
processor work off its own part in shrinking pieces and then help whoever has most left (Markatos and LeBlanc's rule).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: Pieces that a loop is handed out in, at most; beyond that chunks grow.
MOST_PIECES = 200_000


@dataclass(frozen=True, slots=True)
class Assignment:
    """``owner`` (indices,) is the processor of each index, ``pieces`` (P,) how many pieces each took."""

    owner: IntArray
    pieces: IntArray


def assign_indices(
    policy: str, weight: FloatArray, owner: IntArray, start: FloatArray, chunk: int | None = None, dispatch: float = 0.0
) -> Assignment:
    """Return who does what, from the cost of each index, the ``owner`` by decomposition and when each processor is
    free.

    What references to data cost is not known at this time; whoever is free first by weights and ``dispatch`` gets work.
    """
    processors, size = len(start), len(weight)
    if policy == "static":
        return Assignment(owner, np.zeros(processors, dtype=np.int64))
    if policy == "chunk":
        pieces = np.arange(size) // (chunk or 1)
        dealt = pieces % processors
        return Assignment(dealt, np.bincount(dealt[:: chunk or 1], minlength=processors))
    total = np.r_[0.0, np.cumsum(weight)]
    if policy == "affinity":
        return _assign_by_affinity(total, owner, start, dispatch)
    return _assign_greedily(_piece_edges(policy, size, processors, chunk), total, start, dispatch)


def _piece_edges(policy: str, size: int, processors: int, chunk: int | None) -> IntArray:
    """Return where the pieces begin, and the end."""
    if policy == "guided":
        edges, least = [0], chunk or 1
        while edges[-1] < size:
            edges.append(min(size, edges[-1] + max(least, -(-(size - edges[-1]) // processors))))
        return np.array(edges, dtype=np.int64)
    step = max(1 if policy == "self" else chunk or 1, -(-size // MOST_PIECES))
    edges_of: IntArray = np.r_[np.arange(0, size, step), size]
    return edges_of


def _assign_greedily(edges: IntArray, total: FloatArray, start: FloatArray, dispatch: float) -> Assignment:
    owner = np.zeros(len(total) - 1, dtype=np.int64)
    count = np.zeros(len(start), dtype=np.int64)
    free = [(float(time), p) for p, time in enumerate(start)]
    heapq.heapify(free)
    for begin, end in pairwise(edges):
        time, p = free[0]
        owner[begin:end] = p
        count[p] += 1
        heapq.heapreplace(free, (time + dispatch + total[end] - total[begin], p))
    return Assignment(owner, count)


def _assign_by_affinity(total: FloatArray, owner: IntArray, start: FloatArray, dispatch: float) -> Assignment:
    processors = len(start)
    weight = np.diff(total)
    queue = [list(np.flatnonzero(owner == p)) for p in range(processors)]
    done = owner.copy()
    count = np.zeros(processors, dtype=np.int64)
    free = [(float(time), p) for p, time in enumerate(start)]
    heapq.heapify(free)
    while any(queue):
        time, p = free[0]
        victim = p if queue[p] else max(range(processors), key=lambda one: len(queue[one]))
        take = max(1, len(queue[victim]) // processors)
        mine = queue[victim][:take] if victim == p else queue[victim][-take:]
        queue[victim] = queue[victim][take:] if victim == p else queue[victim][:-take]
        done[mine] = p
        count[p] += 1
        heapq.heapreplace(free, (time + dispatch + float(weight[mine].sum()), p))
    return Assignment(done, count)


def migrate_subdomains(processors: int, share: float, random: np.random.Generator) -> IntArray:
    """Return on which processor each sub-domain runs, when a ``share`` of them change places at random."""
    place = np.arange(processors)
    moving = np.flatnonzero(random.random(processors) < share)
    place[moving] = place[np.roll(moving, 1)] if len(moving) > 1 else place[moving]
    return place
