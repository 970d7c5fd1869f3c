"""Islands of clocks: which offsets a trace ties to each other, and the intervals in which they then lie.

Islands are sets of processes, or of clock domains, that no message and no collective ties to any other. Nothing that
happens on one says anything about the clocks of another, so each is aligned by itself.

Intervals come from difference constraints, solved as shortest paths by relaxation. Each constraint says
``before + x_e <= after + x_l`` for the offsets x of two domains; a collective says it of all pairs of its domains by
its latest enter and its earliest leave, so that a sweep takes as long as there are events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.clock_observations import DomainObservations

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.clock_constraints import ClockConstraints

#: Offsets that nearly fit do so after this many sweeps, and some more for each step from domain to domain.
SWEEPS, SWEEPS_A_STEP = 100, 4
#: Changes of an offset below this are rounding, seconds.
ROUNDING_S = 1e-12


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


def largest_violation(observed: DomainObservations) -> float:
    """Return by how many seconds at most the events contradict each other, 0 where they fit."""
    pairs = (observed.before_s - observed.after_s).max(initial=0.0)
    if not len(observed.domain):
        return float(pairs)
    earliest_leave = np.minimum.reduceat(observed.leave_s, observed.first[:-1])
    return float((observed.latest_enters() - earliest_leave).max(initial=pairs))


def project_offsets(observed: DomainObservations) -> FloatArray | None:
    """Return offsets (domains,) near 0, in seconds, with which nothing is contradicted; None if there are none.

    The greatest offsets below 0 and the least ones above 0 that satisfy all constraints do so, and so does their mean.
    """
    nothing = np.zeros(observed.domains)
    sweeps = SWEEPS + SWEEPS_A_STEP * _count_steps(observed)
    below = _lower_offsets(observed, nothing, sweeps)
    above = _lower_offsets(observed.reverse_time(), nothing, sweeps)
    return None if below is None or above is None else (below - above) / 2


def bound_offsets(observed: DomainObservations) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest offset (domains,) that the constraints leave, in seconds, against domain 0.

    They are infinite where nothing ties a domain to the first. What is contradicted is taken to hold just so.
    """
    relaxed = _relax_contradictions(observed)
    start = np.where(np.arange(observed.domains) == 0, 0.0, np.inf)
    high = _lower_offsets(relaxed, start, observed.domains + 1)
    low = _lower_offsets(relaxed.reverse_time(), start, observed.domains + 1)
    unknown = np.full(observed.domains, np.inf)
    return -(unknown if low is None else low), unknown if high is None else high


def _relax_contradictions(observed: DomainObservations) -> DomainObservations:
    """Return the observations with what is contradicted taken to hold just so."""
    if len(observed.domain):
        latest = np.repeat(observed.latest_enters(), np.diff(observed.first))
        observed = replace(observed, leave_s=np.maximum(observed.leave_s, latest))
    return replace(observed, after_s=np.maximum(observed.after_s, observed.before_s))


def _count_steps(observed: DomainObservations) -> int:
    """Return how many steps from domain to domain it takes at most from the first one to any that it is tied to."""
    reached = np.arange(observed.domains) == 0
    size = np.diff(observed.first)
    for step in range(observed.domains):
        more = reached.copy()
        more[observed.earlier[reached[observed.later]]] = True
        more[observed.later[reached[observed.earlier]]] = True
        if len(observed.domain):
            met = np.logical_or.reduceat(reached[observed.domain], observed.first[:-1])
            more[observed.domain[np.repeat(met, size)]] = True
        if np.array_equal(more, reached):
            return step
        reached = more
    return observed.domains


def _lower_offsets(observed: DomainObservations, offset_s: FloatArray, sweeps: int) -> FloatArray | None:
    """Return the greatest offsets up to ``offset_s`` that satisfy all constraints; None if ``sweeps`` do not do."""
    offset = offset_s.copy()
    slack = observed.after_s - observed.before_s
    size = np.diff(observed.first)
    for _ in range(sweeps):
        lower = offset.copy()
        np.minimum.at(lower, observed.earlier, slack + offset[observed.later])
        if len(observed.domain):
            earliest = np.minimum.reduceat(observed.leave_s + offset[observed.domain], observed.first[:-1])
            np.minimum.at(lower, observed.domain, np.repeat(earliest, size) - observed.enter_s)
        if not (lower < offset - ROUNDING_S).any():
            return lower
        offset = lower
    return None
