"""The clock constraints of a trace between clock domains (sets of processes with a common clock)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.clock_constraints import ClockConstraints


#: Of all collectives this share is over within the usual time.
USUAL_SHARE = 0.9


class ClockModel(NamedTuple):
    """The common time of each domain's own time t, seconds: t + ``offset_s`` + ``drift`` x t, (domains,) each."""

    offset_s: FloatArray
    drift: FloatArray

    def correct_times(self, time_s: FloatArray, domain: IntArray) -> FloatArray:
        """Return times of the domains' own clocks on the common clock, seconds."""
        return time_s + self.offset_s[domain] + self.drift[domain] * time_s


@dataclass(frozen=True, slots=True)
class DomainObservations:
    """As ``ClockConstraints``, for domains instead of processes.

    ``enter_s`` is the latest enter of a domain's processes into a collective, ``leave_s`` their earliest leave. All
    that lies behind something else is one timer tick later than recorded, so that rounding contradicts nothing.
    """

    domains: int
    earlier: IntArray
    later: IntArray
    before_s: FloatArray
    after_s: FloatArray
    communicator: IntArray
    small: npt.NDArray[np.bool_]
    first: IntArray
    domain: IntArray
    enter_s: FloatArray
    leave_s: FloatArray

    def correct_clocks(self, model: ClockModel) -> DomainObservations:
        """Return the same observations by clocks that were corrected."""
        return replace(
            self,
            before_s=model.correct_times(self.before_s, self.earlier),
            after_s=model.correct_times(self.after_s, self.later),
            enter_s=model.correct_times(self.enter_s, self.domain),
            leave_s=model.correct_times(self.leave_s, self.domain),
        )

    def reverse_time(self) -> DomainObservations:
        """Return the observations with time running backwards: what raised an offset now lowers it."""
        return replace(
            self,
            earlier=self.later,
            later=self.earlier,
            before_s=-self.after_s,
            after_s=-self.before_s,
            enter_s=-self.leave_s,
            leave_s=-self.enter_s,
        )

    def latest_enters(self) -> FloatArray:
        """Return when the last domain entered each collective, seconds."""
        return np.maximum.reduceat(self.enter_s, self.first[:-1]) if len(self.domain) else np.zeros(0)

    def latest_exits(self) -> FloatArray:
        """Return how long after the last enter each domain may leave a small collective, seconds; infinite without one.

        No domain leaves later than after its own shortest stay, whatever the clocks. One that never comes last stays
        long for that reason alone: a small collective is left by nobody later than twice the time that it usually
        takes the last to come.
        """
        exits = np.full(self.domains, np.inf)
        if not self.small.any():
            return exits
        stay = self.leave_s - self.enter_s
        of_last = np.sort(np.minimum.reduceat(stay, self.first[:-1])[self.small])
        chosen = np.repeat(self.small, np.diff(self.first))
        np.minimum.at(exits, self.domain[chosen], stay[chosen])
        usual = float(of_last[int(USUAL_SHARE * len(of_last))])
        return np.where(np.isfinite(exits), np.minimum(exits, 2 * usual), np.inf)

    def time_spans(self) -> tuple[FloatArray, FloatArray]:
        """Return the first and the last moment at which each domain was seen, by its own clock, seconds."""
        low, high = np.full(self.domains, np.inf), np.full(self.domains, -np.inf)
        for domain, time_s in (
            (self.earlier, self.before_s), (self.later, self.after_s),
            (self.domain, self.enter_s), (self.domain, self.leave_s),
        ):  # fmt: skip
            np.minimum.at(low, domain, time_s)
            np.maximum.at(high, domain, time_s)
        seen = low <= high
        return np.where(seen, low, 0.0), np.where(seen, high, 0.0)


def observe_domains(found: ClockConstraints, domain: IntArray, resolution_s: float) -> DomainObservations:
    """Return what holds between domains; ``domain`` (processes,) is that of each process, numbered from 0."""
    domains = int(domain.max(initial=-1)) + 1
    earlier, later = domain[found.earlier], domain[found.later]
    between = earlier != later
    first, member, enter, leave = found.first, domain[found.process], found.enter_s, found.leave_s
    if domains < len(domain) and len(member):
        collective = np.repeat(np.arange(len(first) - 1), np.diff(first))
        order = np.lexsort((member, collective))
        new = np.r_[True, (np.diff(collective[order]) != 0) | (np.diff(member[order]) != 0)]
        starts = np.flatnonzero(new)
        enter = np.maximum.reduceat(enter[order], starts)
        leave = np.minimum.reduceat(leave[order], starts)
        member = member[order][starts]
        first = np.searchsorted(collective[order][starts], np.arange(len(first)))
    return DomainObservations(
        domains, earlier[between], later[between], found.before_s[between], found.after_s[between] + resolution_s,
        found.communicator, found.small, first, member, enter, leave + resolution_s,
    )  # fmt: skip
