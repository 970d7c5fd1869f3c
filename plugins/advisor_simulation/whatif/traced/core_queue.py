"""Who has a core when ranks queue for too few of them, as the ends of their computations tell.

Where k cores serve the ranks of a host in turns, who is on a core at any time follows from k, from the length of a turn
and from when computations begin and end. So the seconds on a core are known of each computation. If ranks do queue,
these are what comes again, computations end on a core, and the times that were recorded scatter by what was spent in
the queue. If each rank has a core of its own, a queue explains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from advisor.support.grouping import number_values, spread_medians
from advisor_simulation.replay.numba_compiler import choose_compiled, has_numba
from advisor_simulation.whatif.traced import queue_loop, time_slices

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import ReplayRows
    from advisor_simulation.whatif.traced.work import Unit

    Mask = npt.NDArray[np.bool_]

#: Slices of Linux, or none.
SLICES_S: Final = (*time_slices.SLICES_S, np.inf)
#: Ranks on a host, and ends while others are queued, from which on they tell anything.
LEAST_RANKS: Final = 4
LEAST_COUNT: Final = 20
#: So many ranks are in the queue while all compute: a single one that ends last may as well have more work.
LEAST_QUEUED: Final = 2
#: Seconds on a core scatter at most so much of what was recorded, and the usual ones are no farther apart.
EXPLAINED: Final = 0.4
UNUSUAL: Final = 1.2
#: What a queue leaves of the differences between ranks is at most so many times what each rank scatters by itself: else
#: work of its own for each rank, which is as long every time, explains more.
OWN_WORK: Final = 2.0
#: Scatter below this is that of clocks and rounding, which nobody has to explain.
LEAST_SCATTER: Final = 1e-3
#: The part of the ends while others are queued that may fall on a rank in the queue: what runs is not known exactly.
MISPLACED: Final = 0.2
#: The part of all computation that is spent in the queue at least.
QUEUED: Final = 0.1
#: Computations of a host on which numbers of cores and slices are compared before all are looked at, and what of the
#: scatter may be left there.
FIRST: Final = 200
PROMISING: Final = 0.7
#: There are at most so many times as many ranks as cores.
MOST: Final = 4
#: Turns that are followed for each number of cores at most; without compiled loops a hundredth of them.
MOST_TURNS: Final = 10_000_000
#: All numbers of cores up to this one are tried, of larger ones the multiples of eight and fractions of the ranks.
FEW_CORES: Final = 24
#: Times closer than this are one, seconds.
_SAME_S: Final = 2e-7


class _Stretches(NamedTuple):
    """What ranks of a host compute without a pause, in the order in which it begins, and the ends of its parts.

    ``start`` (stretches,); ``end``, ``job`` and ``last`` (parts,) in the order of the ends: the stretch, and whether it
    ends there. ``at`` are the rows, ``seconds`` what was recorded, ``kind`` and ``rank`` tell which are alike, ``turn``
    which are of the same pass of a code, and ``cell`` which are of the same rank, too.
    """

    start: FloatArray
    end: FloatArray
    job: IntArray
    last: Mask
    at: IntArray
    seconds: FloatArray
    kind: IntArray
    rank: IntArray
    turn: IntArray
    cell: IntArray

    def select_parts(self, these: IntArray) -> _Stretches:
        """Return the stretches with some of the parts."""
        end, job, last, at = self.end[these], self.job[these], self.last[these], self.at[these]
        seconds, kind, rank = self.seconds[these], self.kind[these], self.rank[these]
        return _Stretches(self.start, end, job, last, at, seconds, kind, rank, self.turn[these], self.cell[these])

    def measure_scatter(self, seconds: FloatArray) -> FloatArray:
        """Return how equal passes scatter of each rank, and of all: wide and median deviation, (2, 2)."""
        cells, inverse = number_values(self.cell, int(self.cell.max()) + 1)
        total = np.log(np.maximum(np.bincount(inverse, seconds, minlength=len(cells)), 1e-12))
        first = np.zeros(len(cells), dtype=np.int64)
        first[inverse] = np.arange(len(inverse))
        kind, rank = self.kind[first], self.rank[first]
        return np.array([_deviate(total, kind * (int(rank.max()) + 1) + rank), _deviate(total, kind)])


def find_queue(rows: ReplayRows, units: Sequence[Unit], hosts: IntArray) -> time_slices.Turns | None:
    """Return the turns that explain how long ranks of a host compute, None without evidence of any.

    ``rows`` are the recorded ones, ``units`` all their units; ``hosts`` (ranks,) says which host each rank is on. The
    host with most ranks tells; the others are like it.
    """
    sizes = np.bincount(hosts)
    largest, ranks = int(sizes.argmax()), int(sizes.max())
    if rows.program.end_s is None or ranks < LEAST_RANKS or not units:
        return None
    best = _fit_queue(_find_stretches(rows, units, hosts == largest), ranks)
    if best is None:
        return None
    _, cores, slice_s = best
    factor = np.ones(len(rows))
    for host in np.flatnonzero(sizes > cores):
        these = _find_stretches(rows, units, hosts == host)
        told = _follow(these, cores, slice_s)
        if told is not None:
            factor[these.at] = _hand_to_fewer(these, told[0], sizes[host] / cores)
    return time_slices.Turns(cores, ranks, slice_s, factor)


def _hand_to_fewer(these: _Stretches, on_core_s: FloatArray, ranks_per_core: float) -> FloatArray:
    """Return by how much longer each part takes if one rank for each core does what neighbouring ranks did in a pass.

    What is read from a queue scatters; with the work of several ranks, whoever is left has the mean of it.
    """
    cells, inverse = number_values(these.cell, int(these.cell.max()) + 1)
    first = np.zeros(len(cells), dtype=np.int64)
    first[inverse] = np.arange(len(inverse))
    recorded_s, done_s = (np.bincount(inverse, each, minlength=len(cells)) for each in (these.seconds, on_core_s))
    order = np.lexsort((these.rank[first], these.turn[first]))
    begin = np.flatnonzero(np.diff(these.turn[first][order], prepend=-1))
    working = np.diff(begin, append=len(order))
    left = np.maximum(working / ranks_per_core, 1.0)
    start, count, exact, fewer = (np.repeat(each, working) for each in (begin, working, left, np.round(left)))
    block = np.floor((np.arange(len(order)) - start + 0.5) * fewer / count)
    summed = np.r_[0.0, np.cumsum(done_s[order])]
    low, high = (np.interp(start + each * count / fewer, np.arange(len(summed)), summed) for each in (block, block + 1))
    longer = np.empty(len(cells))
    longer[order] = (high - low) * fewer / exact / recorded_s[order]
    return longer[inverse]


def _find_stretches(rows: ReplayRows, units: Sequence[Unit], chosen: Mask) -> _Stretches:
    """Return what the ``chosen`` ranks compute."""
    parts = []
    for number, unit in enumerate(units):
        mine = chosen[rows.line[unit.at]] & (rows.seconds[unit.at] > 0)
        at, turn = unit.at[mine], unit.turn[mine]
        code, begin = unit.codes[rows.line[at]], number * len(rows)
        parts.append(np.stack([at, turn % unit.positions + begin, turn + begin, code]))
    at, kind, turn, code = np.concatenate(parts, axis=1)
    ended = np.asarray(rows.program.end_s)[rows.key[at].astype(np.int64)]
    seconds, rank = rows.seconds[at], rows.line[at].astype(np.int64)
    order = np.lexsort((ended, rank))
    at, kind, turn, code, ended, seconds, rank = (each[order] for each in (at, kind, turn, code, ended, seconds, rank))
    begun = ended - seconds
    goes_on = (np.diff(rank, prepend=-1) == 0) & (begun - np.r_[0.0, ended[:-1]] <= _SAME_S)
    job = np.cumsum(~goes_on) - 1
    first = np.flatnonzero(~goes_on)
    stops = ended[np.r_[first[1:], len(ended)] - 1]
    # who of those that begin together ends first was first in the queue
    place = np.lexsort((stops, np.round(begun[first] / _SAME_S)))
    order_of = np.empty(len(place), dtype=np.int64)
    order_of[place] = np.arange(len(place))
    last = np.r_[~goes_on[1:], True]
    cell = number_values(turn * len(chosen) + rank, int(turn.max(initial=0) + 1) * len(chosen))[1]
    kind = number_values(kind, int(kind.max(initial=0)) + 1)[1]
    turn = turn * (int(code.max(initial=0)) + 2) + code + 1
    found = _Stretches(begun[first][place], ended, order_of[job], last, at, seconds, kind, rank, turn, cell)
    return found.select_parts(np.argsort(ended, kind="stable"))


def _fit_queue(these: _Stretches, ranks: int) -> tuple[float, int, float] | None:
    """Return what is left of the scatter, the cores and the slice that explain most of it; None if none do."""
    # The first stretches, up to a time at which nobody computes
    stops = np.zeros(len(these.start))
    np.maximum.at(stops, these.job, these.end)
    pauses = np.flatnonzero(np.maximum.accumulate(stops)[:-1] <= these.start[1:]) + 1
    later = pauses[pauses >= FIRST]
    count = int(later[0]) if len(later) else len(these.start)
    few = these._replace(start=these.start[:count]).select_parts(np.flatnonzero(these.job < count))
    promising = [one for one in _candidates(these, ranks) if _explain(few, *one, LEAST_COUNT // 2) <= PROMISING]
    found = [(_explain(these, cores, slice_s, LEAST_COUNT), cores, slice_s) for cores, slice_s in promising]
    return min((one for one in found if one[0] <= EXPLAINED), default=None)


def _candidates(these: _Stretches, ranks: int) -> Iterator[tuple[int, float]]:
    longest_s = float(np.bincount(these.job, these.seconds).max(initial=0.0))
    whole_s, most = float(these.seconds.sum()), MOST_TURNS if has_numba() else MOST_TURNS // 100
    few, many = range(max(ranks // MOST, 1), FEW_CORES + 1), range(FEW_CORES + 8, ranks, 8)
    whole = {*few, *many, ranks // 2, ranks // 3, ranks // 4}
    for cores in sorted(whole):
        if 0 < cores <= ranks - LEAST_QUEUED:
            for slice_s in SLICES_S:
                if slice_s == np.inf or (slice_s < longest_s and whole_s <= most * slice_s):
                    yield cores, slice_s


def _explain(these: _Stretches, cores: int, slice_s: float, least: int) -> float:
    """Return what is left of the scatter if a host has so many cores, and the part of the ends that are misplaced.

    Infinite where that does not fit.
    """
    told = _follow(these, cores, slice_s)
    if told is None or told[1] < least or told[0].sum() > (1.0 - QUEUED) * these.seconds.sum():
        return np.inf
    before, after = these.measure_scatter(these.seconds), these.measure_scatter(told[0])
    ratio = np.divide(after, before, out=np.full_like(after, np.inf), where=before > LEAST_SCATTER)
    if after[1, 0] > OWN_WORK * max(before[0, 0], LEAST_SCATTER):
        ratio[1] = np.inf
    left = np.where(ratio[:, 1] <= UNUSUAL, np.sqrt(ratio[:, 0] * ratio[:, 1]), np.inf)  # of rare and of usual times
    return float(left.min()) + told[2] / told[1]


def _deviate(values: FloatArray, group: IntArray) -> tuple[float, float]:
    """Return how far logarithms are from the median of their group: a tenth of them farther, and half of them."""
    center, members = spread_medians(group, values)
    away = np.abs(values - center)[members > 2]
    if not len(away):
        return 0.0, 0.0
    return float(np.quantile(away, 0.9)), float(np.median(away))


def _follow(these: _Stretches, cores: int, slice_s: float) -> tuple[FloatArray, int, int] | None:
    """Return the seconds of each part on a core, the ends while others were queued, and how many of those that were
    queued; None if it does not fit."""
    on_core, counts = np.zeros(len(these.end)), np.zeros(2, dtype=np.int64)
    rules = np.array([slice_s, _SAME_S, MISPLACED])
    events = len(on_core) + these.seconds.sum() / slice_s
    run = choose_compiled(queue_loop.follow_queue, int(events) * len(SLICES_S) * FEW_CORES)
    state = queue_loop.prepare_queue(len(these.start), cores)
    fits = run(these.start, these.end, these.job, these.last, rules, state, on_core, counts)
    return (on_core, int(counts[0]), int(counts[1])) if fits else None
