"""Intervals of the clock offsets: difference constraints, solved as shortest paths by relaxation.

Each constraint says ``before + x_e <= after + x_l`` for the offsets x of two domains; a collective says it of all pairs
of its domains by its latest enter and its earliest leave, so that a sweep takes as long as there are events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor.trace.clock_observations import DomainObservations

#: Offsets that nearly fit do so after this many sweeps, and some more for each step from domain to domain.
SWEEPS, SWEEPS_A_STEP = 100, 4
#: Changes of an offset below this are rounding, seconds.
ROUNDING_S = 1e-12


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
