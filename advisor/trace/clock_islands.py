"""Islands: sets of processes, or of clock domains, that no message and no collective ties to any other.

Nothing that happens on one island says anything about the clocks of another, so each is aligned by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.clock_observations import DomainObservations

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.clock_constraints import ClockConstraints


@dataclass(frozen=True, slots=True)
class Island:
    """The domains of an island, in order, and what was observed of them, in which they are numbered from 0."""

    domains: IntArray
    observed: DomainObservations


def find_islands_of_processes(found: ClockConstraints, processes: int) -> IntArray:
    """Return (processes,) the island of each process, numbered in the order of the processes."""
    return _find_islands(processes, found.earlier, found.later, found.process, found.first)


def find_islands(observed: DomainObservations) -> IntArray:
    """Return (domains,) the island of each domain, numbered in the order of the domains."""
    return _find_islands(observed.domains, observed.earlier, observed.later, observed.domain, observed.first)


def split_islands(observed: DomainObservations, island: IntArray) -> Iterator[Island]:
    """Yield all islands of more than one domain with their observations; ``island`` (domains,) numbers that of each."""
    count = int(island.max(initial=-1)) + 1
    if count == 1:
        yield Island(np.arange(observed.domains), observed)
        return
    order, edges = _sort_by(island, count)
    number = np.empty(len(island), dtype=np.int64)
    number[order] = np.arange(len(island)) - np.repeat(edges[:-1], np.diff(edges))
    pairs, pair_edges = _sort_by(island[observed.earlier], count)
    collectives, collective_edges = _sort_by(island[observed.domain[observed.first[:-1]]], count)
    for one in np.flatnonzero(np.diff(edges) > 1).tolist():
        pair = pairs[pair_edges[one] : pair_edges[one + 1]]
        collective = collectives[collective_edges[one] : collective_edges[one + 1]]
        size = np.diff(observed.first)[collective]
        first = np.r_[0, np.cumsum(size)].astype(np.int64)
        member = np.repeat(observed.first[collective] - first[:-1], size) + np.arange(first[-1])
        domains = order[edges[one] : edges[one + 1]]
        yield Island(domains, DomainObservations(
            len(domains), number[observed.earlier[pair]], number[observed.later[pair]],
            observed.before_s[pair], observed.after_s[pair], observed.communicator[collective],
            observed.small[collective], first, number[observed.domain[member]],
            observed.enter_s[member], observed.leave_s[member],
        ))  # fmt: skip


def _find_islands(count: int, earlier: IntArray, later: IntArray, member: IntArray, first: IntArray) -> IntArray:
    """Return the connected components of a graph: each takes the least number of its neighbours until all have it."""
    one = np.concatenate((earlier, member))
    other = np.concatenate((later, np.repeat(member[first[:-1]], np.diff(first))))
    least = np.arange(count)
    while True:
        known = least
        lower = np.minimum(known[one], known[other])
        least = known.copy()
        np.minimum.at(least, np.concatenate((one, other, known[one], known[other])), np.tile(lower, 4))
        least = least[least]
        if np.array_equal(least, known):
            return np.unique(least, return_inverse=True)[1].astype(np.int64)


def _sort_by(key: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return an order in which the keys, all below ``count``, rise, and where each of them begins in it."""
    order = np.argsort(key, kind="stable")
    return order, np.searchsorted(key[order], np.arange(count + 1))
