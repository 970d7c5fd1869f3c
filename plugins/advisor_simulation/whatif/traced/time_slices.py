"""Whether equal computations of the ranks of a host end as they do when few cores take turns in slices of time.

Ranks that begin together, compute the same and share k cores round robin don't end together: the last slices are short,
and some ranks wait for theirs. When each ends follows from k, the slice and the work. Where that explains nearly all of
how a host's ranks differ, with the slice of a scheduler in use, they take turns; work that differs ends otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.whatif.traced.rows import ReplayRows
    from advisor_simulation.whatif.traced.work import Unit

    Mask = npt.NDArray[np.bool_]

#: Slices of Linux: ticks of 1, 4 and 10 ms (HZ = 1000, 250, 100), and the base slice of 3 ms from 6.6 on.
SLICES_S: Final = (0.001, 0.003, 0.004, 0.01)
#: Ranks on a host from which on, and as many passes in which they begin together, their ends tell anything.
LEAST_RANKS: Final = 5
LEAST_PASSES: Final = 4
#: Ranks begin together if they do so within this share of what they compute.
TOGETHER: Final = 0.05
#: Ends that scatter by less than this share have nothing to explain.
SCATTER: Final = 0.004
#: The part of the scatter that turns may leave: where several hosts or sizes agree, and where nothing else tells.
UNEXPLAINED: Final = 0.15
UNEXPLAINED_ALONE: Final = 0.02
#: The part of all that scatters which turns explain at least: of many hosts a few look like it by chance.
EXPLAINED: Final = 0.5
#: Ends apart by this part of the whole range are on different levels; three of them are no two kinds of ranks.
LEVEL: Final = 0.1
LEVELS: Final = 3
#: Numbers of cores that are tried, about.
TRIES: Final = 12


class Turns(NamedTuple):
    """Ranks of a host take turns on ``cores`` in slices of ``slice_s``.

    ``factor`` (rows,) is how long each computation takes, compared with now, if one rank for each core does all.
    """

    cores: int
    ranks: int
    slice_s: float
    factor: FloatArray


class _Fit(NamedTuple):
    """How well turns on ``cores`` in slices of ``slice_s`` explain the ends of a host's ranks, ``left`` of 1.

    The cores are ``used`` for this part of the time until the last one ends, ``last_s``.
    """

    left: float
    cores: int
    slice_s: float
    levels: int
    used: float
    last_s: float


class _Group(NamedTuple):
    """Computations that ``ranks`` of a host begin together: a unit, which of its passes, and the ends (ranks, n)."""

    unit: Unit
    ranks: IntArray
    passes: IntArray
    ends: FloatArray


def find_turns(rows: ReplayRows, found: Sequence[Unit], hosts: IntArray) -> Turns | None:
    """Return the turns that ranks of a host take on too few cores, None without evidence of any.

    ``rows`` are the recorded ones, ``found`` all their units; ``hosts`` (ranks,) says which host each rank is on.
    """
    fits, scattering = _fit_groups(list(_find_groups(rows, found, hosts)))
    fits = [one for one in fits if any(_confirms(*one, *other) for other in fits)]
    if not fits or len(fits) < EXPLAINED * scattering:
        return None
    factor = np.ones(len(rows))
    for group, fit in fits:
        alone = np.ones_like(group.unit.seconds)
        at = np.ix_(group.ranks, group.passes)
        own = group.unit.seconds[at]
        alone[at] = np.divide(fit.used * group.ends.max(axis=0), own, out=np.ones_like(own), where=own > 0)
        factor[group.unit.at] *= alone[rows.line[group.unit.at], group.unit.turn]
    best = min((fit for _, fit in fits), key=lambda fit: fit.left)
    return Turns(best.cores, max(len(group.ranks) for group, _ in fits), best.slice_s, factor)


def _confirms(group: _Group, fit: _Fit, other: _Group, second: _Fit) -> bool:
    """Return whether a fit is significant: by itself, or confirmed elsewhere or for another size."""
    if group is other:
        return fit.left <= UNEXPLAINED_ALONE or fit.levels >= LEVELS
    same = (fit.cores, fit.slice_s) == (second.cores, second.slice_s)
    apart = abs(fit.last_s - second.last_s) > TOGETHER * fit.last_s
    return same and (apart or group.ranks[0] != other.ranks[0])


def _find_groups(rows: ReplayRows, found: Sequence[Unit], hosts: IntArray) -> Iterator[_Group]:
    """Yield what ranks of a host begin together in several passes."""
    ended = rows.program.end_s
    if ended is None:
        return
    for unit in found:
        places = [ranks for ranks in unit.find_working_groups(hosts) if len(ranks) >= LEAST_RANKS]
        begun = np.full(unit.seconds.shape, np.nan)
        start_s = ended[rows.key[unit.at].astype(np.int64)] - rows.seconds[unit.at]
        np.fmin.at(begun, (rows.line[unit.at], unit.turn), start_s)
        for place in range(unit.positions):
            passes = np.arange(place, unit.seconds.shape[1], unit.positions)
            for ranks in places:
                seconds, start = unit.seconds[np.ix_(ranks, passes)], begun[np.ix_(ranks, passes)]
                together = start.max(axis=0) - start.min(axis=0) <= TOGETHER * seconds.min(axis=0)
                if together.sum() >= LEAST_PASSES:
                    ends = (seconds + start - start.min(axis=0))[:, together]
                    yield _Group(unit, ranks, passes[together], ends)


def _fit_groups(groups: Sequence[_Group]) -> tuple[list[tuple[_Group, _Fit]], int]:
    """Return the groups whose ends turns explain, each with the turns that do so best; and how many groups scatter.

    In each pass another rank may be the last one: the usual ends are those of the first, the second ... in each.
    """
    usual: dict[int, list[tuple[_Group, FloatArray]]] = defaultdict(list)
    for group in groups:
        ends = np.median(np.sort(group.ends, axis=0), axis=1)
        if ends.std() >= SCATTER * ends.mean():
            usual[len(ends)].append((group, ends))
    fits: list[tuple[_Group, _Fit]] = []
    for same in usual.values():  # groups of as many ranks at once
        found = _fit_slices(np.stack([ends for _, ends in same], axis=1))
        fits += [(group, fit) for (group, _), fit in zip(same, found, strict=True) if fit is not None]
    return fits, sum(map(len, usual.values()))


def _fit_slices(ends: FloatArray) -> list[_Fit | None]:
    """Return the turns that explain ends (ranks, groups) of each group best, None where they leave too much."""
    ranks, groups = ends.shape
    scatter, apart, last_s = ends.std(axis=0), np.ptp(ends, axis=0), ends[-1]
    counts = np.unique(np.r_[ranks // 2, np.geomspace(2, ranks - 1, TRIES).round().astype(int)])
    slices, tries, group = (one.ravel() for one in np.meshgrid(SLICES_S, counts, np.arange(groups), indexing="ij"))
    likely = apart[group] <= 2 * slices
    slices, tries, group = slices[likely], tries[likely], group[likely]
    work_s = _find_work(ranks, tries, slices, last_s[group])
    away_s = np.sqrt(np.mean((ends[:, group] - compute_ends(ranks, tries, slices, work_s)) ** 2, axis=0))
    best: list[_Fit | None] = [None] * groups
    for one in np.argsort(away_s, kind="stable")[::-1].tolist():  # the best one of each group comes last
        at = int(group[one])
        if away_s[one] < UNEXPLAINED * scatter[at]:
            levels = 1 + int((np.diff(ends[:, at]) > LEVEL * apart[at]).sum())
            used = float(ranks * work_s[one] / (tries[one] * last_s[at]))
            left = float(away_s[one] / scatter[at])
            best[at] = _Fit(left, int(tries[one]), float(slices[one]), levels, used, float(last_s[at]))
    return best


def _find_work(ranks: int, cores: IntArray, slice_s: FloatArray, last_s: FloatArray) -> FloatArray:
    """Return how much each rank computes if the last one ends at ``last_s``, in each of (n,) cases."""
    low, high = np.maximum(last_s * cores / ranks - 2 * slice_s, 0.0), last_s.copy()
    for _ in range(16):
        work_s = (low + high) / 2
        later = compute_ends(ranks, cores, slice_s, work_s)[-1] > last_s
        low, high = np.where(later, low, work_s), np.where(later, work_s, high)
    return low


def compute_ends(ranks: int, cores: IntArray, slice_s: FloatArray, work_s: FloatArray) -> FloatArray:
    """Return when ranks end (ranks, n), sorted, that begin together and compute ``work_s`` in turns on few cores.

    ``cores``, ``slice_s`` and ``work_s`` (n,) are those of n cases. After the whole slices each rank in turn needs the
    same rest, on the core that is free first: one that was given no more whole slices, or one where a rank has ended.
    """
    whole = np.maximum(np.ceil(work_s / slice_s - 1e-9) - 1, 0).astype(np.int64)
    rest_s, before = work_s - whole * slice_s, whole * ranks
    early = cores - before % cores  # cores with a whole slice less than the others
    ends = np.full((ranks, len(cores)), np.inf)
    taken, case = np.zeros_like(whole), np.arange(len(cores))
    for rank in range(ranks):
        fresh_s = np.where(taken < cores, (before // cores + (taken >= early)) * slice_s, np.inf)
        again_s = ends[rank - taken, case]
        ready_s = np.where(whole > 0, (((whole - 1) * ranks + rank) // cores + 1) * slice_s, 0.0)
        ends[rank] = np.maximum(np.minimum(fresh_s, again_s), ready_s) + rest_s
        taken += fresh_s <= again_s
    return ends
