"""Least, mean and most over the ranks of each region: what they allow to be said about how the work is spread.

Timing tables of libraries, and Caliper's ``spot`` and ``runtime-report``, add the ranks up in the run and keep, for
each region, the least, mean and most seconds of any rank, with everything below the region. Which rank has which is
lost. What is certain all the same:

* the mean work of a rank is the sum of the means;
* some rank takes the most of a region; of all others it takes the least at the least. A region here is the largest
  subtree without communication, of which least and most are those of its work;
* some rank communicates least in a call; in all other calls it communicates at most the most, and what it does not
  communicate of the shortest rank's time it works. Where a table says that the same rank is least in several calls, or
  takes the most of several regions, that adds up.

The largest of these is the least that the slowest rank works, and so a lower bound of the run time, as IPCOL has to be.
The columns made here have one rank that works that long, and others that share the rest equally.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor.trace.callpaths.records import CallPathNode

_NOTHING_S: Final = 1e-12
#: What waits for other ranks, or may.
CALLS: Final = frozenset(role for role in Role if Role.INIT <= role <= Role.LOCAL)


@dataclass(frozen=True, slots=True)
class Extremes:
    """Seconds of each node (nodes,) with what is below it: the least, mean and most over all ranks.

    ``least_at`` and ``most_at`` (nodes,) are the ranks that take the least and the most, -1 where they are not known.
    """

    least: FloatArray
    mean: FloatArray
    most: FloatArray
    least_at: npt.NDArray[np.int64] | None = None
    most_at: npt.NDArray[np.int64] | None = None


def spread_over_ranks(found: Extremes, nodes: Sequence[CallPathNode], ranks: int) -> FloatArray:
    """Return own seconds (nodes, ranks) whose means are those of ``found``; rank 0 stands for the slowest.

    The slowest rank works the least seconds that the extremes allow the slowest to have; in calls it is as long as the
    ranks are on average, less what it works more than they.
    """
    calls = np.array([node.role in CALLS for node in nodes])
    own = np.maximum(found.mean - sum_children(found.mean, nodes), 0.0)
    work = _slowest_work(found, own, nodes, calls)
    left = max(float(own.sum() - work.sum()), 0.0)
    slowest = np.where(calls, own * (left / max(float(own[calls].sum()), _NOTHING_S)), work)
    slowest = np.minimum(slowest, own * ranks)
    others = (own * ranks - slowest) / (ranks - 1)
    table = np.repeat(others[:, None], ranks, axis=1)
    table[:, 0] = slowest
    return table


def shortest_call_s(found: Extremes, nodes: Sequence[CallPathNode], ranks: int) -> FloatArray:
    """Return what calls take on the rank that is least in them (nodes, ranks), NaN for nodes that are no calls."""
    calls = np.array([node.role in CALLS for node in nodes])
    shortest: FloatArray = np.repeat(np.where(calls, found.least, np.nan)[:, None], ranks, axis=1)
    return shortest


def longest_run_s(found: Extremes, nodes: Sequence[CallPathNode]) -> float:
    """Return the seconds that the longest rank takes at the least."""
    roots = np.array([node.parent < 0 for node in nodes])
    means = float(found.mean[roots].sum())
    return means + float((found.most - found.mean)[roots].max(initial=0.0))


def _slowest_work(
    found: Extremes, own: FloatArray, nodes: Sequence[CallPathNode], calls: npt.NDArray[np.bool_]
) -> FloatArray:
    """Return own seconds (nodes,) of the slowest rank outside of calls."""
    unit = _largest_without_calls(nodes, calls)
    works = ~calls
    below = np.maximum(found.least - sum_children(found.most, nodes), 0.0)
    least = np.where(unit >= 0, 0.0, np.minimum(below, own)) * works
    mean = own * works
    heads = np.flatnonzero(unit == np.arange(len(nodes)))
    certain = float(least.sum() + found.least[heads].sum())
    rise = np.where(unit == np.arange(len(nodes)), found.most - found.least, 0.0)
    value, total = found.least, max(float(mean.sum()), _besides_calls(found, nodes, calls))
    for chosen in _choose_heads(found, heads):
        if certain + float(rise[chosen].sum()) > total:
            total = certain + float(rise[chosen].sum())
            value = found.least.copy()
            value[chosen] = found.most[chosen]
    if value is found.least:
        return _spread_excess(mean, total, np.where(unit == np.arange(len(nodes)), found.most - found.mean, 0.0))
    scale = np.divide(value, found.mean, out=np.zeros_like(value), where=found.mean > 0)
    return np.where(unit >= 0, own * scale[np.maximum(unit, 0)], least) * works


def _choose_heads(found: Extremes, heads: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield what may take the most on one rank: each of ``heads`` alone, and all of which the same rank takes it."""
    yield from heads[:, None]
    if found.most_at is not None:
        for rank in np.unique(found.most_at[heads]).tolist():
            if rank >= 0:
                yield heads[found.most_at[heads] == rank]


def _spread_excess(mean: FloatArray, total: float, room: FloatArray) -> FloatArray:
    """Return ``mean`` raised to ``total`` seconds: where some rank takes more than the mean, else in proportion."""
    excess = total - float(mean.sum())
    if excess <= room.sum():
        raised: FloatArray = mean + room * (excess / room.sum() if room.sum() > 0 else 0.0)
        return raised
    return mean * (total / mean.sum()) if mean.sum() > 0 else mean


def _besides_calls(found: Extremes, nodes: Sequence[CallPathNode], calls: npt.NDArray[np.bool_]) -> float:
    """Return what the rank works at least that communicates least in one call, and the most in all others."""
    outer = np.array([call and not (node.parent >= 0 and calls[node.parent])
                      for call, node in zip(calls, nodes, strict=True)])  # fmt: skip
    if not outer.any():
        return 0.0
    shortest = float(found.least[[node.parent < 0 for node in nodes]].sum())
    return (
        shortest - float(found.most[outer].sum()) + _most_on_one_rank(found.most - found.least, found.least_at, outer)
    )


def _most_on_one_rank(seconds: FloatArray, ranks: npt.NDArray[np.int64] | None, chosen: npt.NDArray[np.bool_]) -> float:
    """Return the most ``seconds`` that come together on one rank: one of those ``chosen``, or all of the same rank."""
    largest = float(seconds[chosen].max(initial=0.0))
    known = chosen & (ranks >= 0) if ranks is not None else np.zeros(len(chosen), dtype=bool)
    if ranks is None or not known.any():
        return largest
    together = np.bincount(ranks[known], weights=seconds[known])
    return max(largest, float(together.max()))


def _largest_without_calls(nodes: Sequence[CallPathNode], calls: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each node the head of the largest subtree without calls that it is in, -1 where there is none."""
    pure = ~calls
    for n in range(len(nodes) - 1, -1, -1):
        if nodes[n].parent >= 0:
            pure[nodes[n].parent] &= pure[n]
    unit = np.full(len(nodes), -1, dtype=np.int64)
    for n, node in enumerate(nodes):
        if pure[n]:
            unit[n] = unit[node.parent] if node.parent >= 0 and pure[node.parent] else n
    return unit


def sum_children(inclusive: FloatArray, nodes: Sequence[CallPathNode]) -> FloatArray:
    """Return what the children of each node took together (nodes,)."""
    below = np.zeros_like(inclusive)
    for n, node in enumerate(nodes):
        if node.parent >= 0:
            below[node.parent] += inclusive[n]
    return below
