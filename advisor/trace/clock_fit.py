"""Clocks fitted by least squares to simultaneous events.

Two kinds of events tell more than which came first. Once the last process has entered an N-to-N collective, all leave
it after about the same time. And of messages that go both ways, the fastest take about as long in one direction as in
the other. Delays only ever add to these times, so of every stretch of the run the shortest one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.clock_observations import ClockModel, DomainObservations

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

#: Stretches of the run of which each gives one measurement for a domain.
STRETCHES = 32
#: Times that the fit is repeated at most: which enter was the last depends on the clocks.
ROUNDS = 12
#: Steps of the conjugate gradients at most, and the share of the residual at which they end.
STEPS, ENOUGH = 400, 1e-7
#: Rounds end when no clock moves by more than this share of the error that a measurement has.
SETTLED = 0.05


@dataclass(frozen=True, slots=True)
class ClockFit:
    """Fitted clocks. ``scatter_s`` (domains,): the uncertainty of each domain's clock from its measurements.

    ``misfit`` is the mean square of what the clocks leave unexplained, in units of the expected error; every domain has
    at least ``least_measurements``. ``scatter_s`` is infinite for domains without small collectives.
    """

    model: ClockModel
    scatter_s: FloatArray
    misfit: float
    least_measurements: int


@dataclass(frozen=True, slots=True)
class _Measurements:
    """Rows that say: clock of ``domain`` less that of ``other`` (or less what is common to ``group``) is off by this.

    ``compute_position`` and ``other_position`` are the moments, from -1 to 1 over each domain's own time; ``other`` and
    ``group`` are one behind the last where a row has none; ``sigma_s`` is the error to expect.
    """

    domain: IntArray
    position: FloatArray
    other: IntArray
    other_position: FloatArray
    group: IntArray
    off_s: FloatArray
    sigma_s: FloatArray

    @classmethod
    def make_empty(cls) -> _Measurements:
        """Return no rows."""
        number, value = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(number, value, number, value, number, value, value)

    def join_rows(self, more: _Measurements) -> _Measurements:
        """Return these rows and ``more``."""
        names = _Measurements.__slots__
        return _Measurements(*(np.concatenate((getattr(self, name), getattr(more, name))) for name in names))


def fit_clocks(observed: DomainObservations, resolution_s: float, drifting_from: ClockModel | None = None) -> ClockFit:
    """Return the clocks that best explain the observations, the first domain's as it is.

    They have constant offsets, or drift where a model is given to begin with, which should have these.
    """
    low, high = observed.time_spans()
    axis = _TimeAxis((low + high) / 2, np.maximum(high - low, resolution_s) / 2)
    exits, messages = _CollectiveExits(observed, axis), _MessagePairs(observed, axis)
    model = drifting_from or ClockModel(np.zeros(observed.domains), np.zeros(observed.domains))
    for _ in range(ROUNDS):
        corrected = observed.correct_clocks(model)
        rows = exits.measure_delays(corrected, resolution_s).join_rows(
            messages.measure_delays(corrected, resolution_s, exits.groups)
        )
        at_middle, to_end = _solve_least_squares(
            rows, observed.domains, exits.groups, drifting=drifting_from is not None
        )
        drift = to_end / axis.half_s
        model = ClockModel(model.offset_s + at_middle - drift * axis.middle_s, model.drift + drift)
        if (np.abs(at_middle) + np.abs(to_end)).max() <= max(
            resolution_s, SETTLED * float(rows.sigma_s.min(initial=0.0))
        ):
            break
    return _judge_fit(observed.correct_clocks(model), model, exits, messages, resolution_s)


@dataclass(frozen=True, slots=True)
class _TimeAxis:
    """The middle and half the length of each domain's own time, seconds: positions on it go from -1 to 1."""

    middle_s: FloatArray
    half_s: FloatArray

    def compute_position(self, time_s: FloatArray, domain: IntArray) -> FloatArray:
        """Return where moments lie on their domains' own time."""
        return (time_s - self.middle_s[domain]) / self.half_s[domain]


class _CollectiveExits:
    """The earliest leave of each domain after the last enter, for each communicator and stretch of its collectives.

    These are the ``groups``: within one, the clocks should make all domains leave after the same time.
    """

    def __init__(self, observed: DomainObservations, axis: _TimeAxis) -> None:
        self._size = np.diff(observed.first)
        # collectives that move much are left by each when its data have arrived: they speak where there are no others
        speaking = observed.small if observed.small.any() else np.ones(len(observed.small), dtype=np.bool_)
        group = np.full(len(speaking), -1)
        group[speaking] = _stretches_of_collectives(observed.communicator[speaking])
        group = np.repeat(group, self._size)
        self.groups = int(group.max(initial=-1)) + 1
        self._row = np.flatnonzero(group >= 0)
        self._order, self._starts = _sort_groups(group[self._row] * observed.domains + observed.domain[self._row])
        chosen = self._row[self._order[self._starts]]
        self._domain, self._group = observed.domain[chosen], group[chosen]
        self._position = axis.compute_position(observed.leave_s, observed.domain)

    def measure_delays(self, corrected: DomainObservations, resolution_s: float) -> _Measurements:
        """Return by how much each domain's clock makes it leave too late, against what is common to its group."""
        if not self.groups:
            return _Measurements.make_empty()
        late = corrected.leave_s - np.repeat(corrected.latest_enters(), self._size)
        earliest, row = _least_of_groups(late[self._row], self._order, self._starts)
        row = self._row[row]
        expected = np.abs(_group_medians(earliest, self._group, self.groups)) + resolution_s
        nobody = np.full(len(row), corrected.domains)
        return _Measurements(
            self._domain, self._position[row], nobody, np.zeros(len(row)), self._group, -earliest,
            expected[self._group],
        )  # fmt: skip


class _MessagePairs:
    """The fastest messages of each two domains in both directions, for each stretch of the run."""

    def __init__(self, observed: DomainObservations, axis: _TimeAxis) -> None:
        before, after = (
            axis.compute_position(time_s, domain)
            for time_s, domain in ((observed.before_s, observed.earlier), (observed.after_s, observed.later))
        )
        stretch = np.clip((before + 1) / 2 * STRETCHES, 0, STRETCHES - 1).astype(np.int64)
        low, high = np.minimum(observed.earlier, observed.later), np.maximum(observed.earlier, observed.later)
        pair, backward = low * observed.domains + high, observed.earlier > observed.later
        both = _go_both_ways(pair * STRETCHES + stretch, backward)
        answered = np.isin(pair, pair[both])
        # messages that are never answered within a stretch of the run are compared over all of it
        key = (pair * STRETCHES + np.where(answered, stretch, 0)) * 2 + backward
        self._order, self._starts = _sort_groups(key)
        key = key[self._order[self._starts]]
        self._forth = np.flatnonzero((key[:-1] % 2 == 0) & (key[1:] == key[:-1] + 1))
        self._before, self._after = before, after

    def measure_delays(self, corrected: DomainObservations, resolution_s: float, groups: int) -> _Measurements:
        """Return by how much the first of two clocks is behind the second, by messages that go both ways."""
        if not len(self._forth):
            return _Measurements.make_empty()
        least, row = _least_of_groups(corrected.after_s - corrected.before_s, self._order, self._starts)
        forth, back = row[self._forth], row[self._forth + 1]
        there, again = least[self._forth], least[self._forth + 1]
        return _Measurements(
            corrected.earlier[forth], (self._before[forth] + self._after[back]) / 2,
            corrected.later[forth], (self._after[forth] + self._before[back]) / 2,
            np.full(len(forth), groups), (there - again) / 2, np.abs(there + again) / 2 + resolution_s,
        )  # fmt: skip


def _stretches_of_collectives(communicator: IntArray) -> IntArray:
    """Return the group of each collective: those of one communicator, in ``STRETCHES`` equal parts by their order."""
    if not len(communicator):
        return communicator
    order = np.argsort(communicator, kind="stable")
    _, number, count = np.unique(communicator[order], return_inverse=True, return_counts=True)
    turn = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    group = np.empty(len(order), dtype=np.int64)
    group[order] = number * STRETCHES + turn * STRETCHES // count[number]
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


def _go_both_ways(key: IntArray, backward: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which messages have one of the same ``key`` in the other direction."""
    return np.where(backward, np.isin(key, key[~backward]), np.isin(key, key[backward]))


def _sort_groups(key: IntArray) -> tuple[IntArray, IntArray]:
    """Return an order in which equal keys stand together, and where each of them begins in it."""
    order = np.argsort(key, kind="stable")
    return order, np.flatnonzero(np.r_[True, np.diff(key[order]) != 0][: len(order)])


def _least_of_groups(values: FloatArray, order: IntArray, starts: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the least value of each group, and which one it is."""
    values = values[order]
    least = np.minimum.reduceat(values, starts)
    size = np.diff(np.r_[starts, len(order)])
    equal = np.where(values == np.repeat(least, size), np.arange(len(order)), len(order))
    return least, order[np.minimum.reduceat(equal, starts)]


def _group_medians(values: FloatArray, group: IntArray, groups: int) -> FloatArray:
    """Return the (upper) median of the values of each group."""
    order = np.lexsort((values, group))
    edges = np.searchsorted(group[order], np.arange(groups + 1))
    medians: FloatArray = values[order][(edges[:-1] + edges[1:]) // 2]
    return medians


def _solve_least_squares(
    rows: _Measurements, domains: int, groups: int, *, drifting: bool
) -> tuple[FloatArray, FloatArray]:
    """Return how far each clock is behind in the middle of the run, and how much more at its end, (domains,) each.

    The first clock stays: all of them faster or slower would fit nearly as well. Conjugate gradients on the normal
    equations, which are sparse, with their diagonal as the preconditioner.
    """
    weight = 1 / rows.sigma_s
    size = domains + 1
    moves = 1.0 if drifting else 0.0

    def residual_of(unknown: FloatArray) -> FloatArray:
        middle, end, common = np.split(unknown, [size, 2 * size])
        one = middle[rows.domain] + moves * end[rows.domain] * rows.position
        two = middle[rows.other] + moves * end[rows.other] * rows.other_position
        return weight * (one - two - common[rows.group])

    def gradient_of(values: FloatArray, power: int = 1) -> FloatArray:
        """Return the transposed product; ``power`` 2 gives the diagonal of the normal equations instead."""
        sign = -1.0 if power == 1 else 1.0
        weighted = values * weight**power
        one, two = (rows.domain, rows.position**power), (rows.other, rows.other_position**power)
        middle = sum_by_group(one[0], weighted, size) + sign * sum_by_group(two[0], weighted, size)
        end = moves * (
            sum_by_group(one[0], weighted * one[1], size) + sign * sum_by_group(two[0], weighted * two[1], size)
        )
        common = sign * sum_by_group(rows.group, weighted, groups + 1)
        middle[[0, -1]] = end[[0, -1]] = common[-1] = 0.0
        return np.concatenate((middle, end, common))

    diagonal = gradient_of(np.ones(len(weight)), 2)
    scale = 1 / np.where(diagonal > 0, diagonal, 1.0)
    unknown = np.zeros(len(scale))
    rest = gradient_of(weight * rows.off_s)
    direction = scale * rest
    energy = first = _inner_product(rest, direction)
    for _ in range(STEPS):
        image = residual_of(direction)
        curvature = _inner_product(image, image)
        if energy <= ENOUGH**2 * first or not curvature:
            break
        step = energy / curvature
        unknown += step * direction
        rest -= step * gradient_of(image)
        before, energy = energy, _inner_product(rest, scale * rest)
        direction = scale * rest + energy / before * direction
    return unknown[:domains], moves * unknown[size : size + domains]


def _inner_product(one: FloatArray, two: FloatArray) -> float:
    """Return the inner product, the same on every machine: a BLAS sums by threads, and waits for them."""
    return float((one * two).sum())


def _judge_fit(
    corrected: DomainObservations, model: ClockModel, exits: _CollectiveExits, messages: _MessagePairs,
    resolution_s: float,
) -> ClockFit:  # fmt: skip
    """Return the fit with what it leaves unexplained.

    That all leave together is wrong by no more than a domain's latest exit, or the average one, and the scatter of its
    leaves comes on top. Without small collectives nothing is known of either.
    """
    of_exits = exits.measure_delays(corrected, resolution_s)
    of_messages = messages.measure_delays(corrected, resolution_s, exits.groups)
    count = sum_by_group(of_exits.group, np.ones(len(of_exits.group)), exits.groups + 1)
    common = sum_by_group(of_exits.group, of_exits.off_s, exits.groups + 1) / np.maximum(count, 1)
    rest = of_exits.off_s - common[of_exits.group]
    scatter = np.zeros(corrected.domains)
    np.maximum.at(scatter, of_exits.domain, np.abs(rest))
    latest = corrected.latest_exits()
    known = latest[np.isfinite(latest)]
    delay = np.maximum(latest, known.mean() if len(known) else np.inf)
    count_of = np.bincount(
        np.concatenate((of_exits.domain, of_messages.domain, of_messages.other)), minlength=corrected.domains
    )
    misfit = np.r_[rest / of_exits.sigma_s, of_messages.off_s / of_messages.sigma_s]
    return ClockFit(
        model, delay + scatter, float((misfit**2).mean()) if len(misfit) else 0.0,
        int(count_of.min()),
    )  # fmt: skip
