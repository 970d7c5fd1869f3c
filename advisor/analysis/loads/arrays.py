"""Sums over the arrays of one phase, block by block, for ranks of one or several threads.

Threads of a rank are charged what the rank's first thread does outside parallel regions: the load of thread k of rank
R is ``t[R, k] + m[R]`` (docs/concepts.md). Mean and maximum over processors of these loads are the two-level formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.support.grouping import sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray, Phase, Processor, Region

#: Values of one array that are worked on at a time: few enough to stay in the cache.
BLOCK: Final = 2**17
#: Reading fewer neighbouring iterations than this at a time would waste most of each cache line.
FEWEST: Final = 16

Terms = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class RankThreads:
    """Charging of serial time to threads: ``master`` (Q,) is the first thread of each processor's rank.

    ``others`` lists the processors that are not the first of their rank; ``followers`` (Q,) counts those that are
    charged with what this one does outside parallel regions.
    """

    master: IntArray
    others: IntArray
    followers: FloatArray

    @property
    def is_hybrid(self) -> bool:
        """Whether any rank has more than one thread."""
        return bool(len(self.others))


def find_rank_threads(processors: Sequence[Processor]) -> RankThreads:
    """Return the threads' masters; the first thread of a rank is that of the lowest number."""
    first: dict[int, int] = {}
    for number in sorted(range(len(processors)), key=lambda number: processors[number].thread):
        first.setdefault(processors[number].rank, number)
    master = np.array([first[processor.rank] for processor in processors], dtype=np.int64)
    others = np.flatnonzero(master != np.arange(len(processors)))
    return RankThreads(master, others, np.bincount(master[others], minlength=len(processors)).astype(np.float64))


@dataclass(frozen=True, slots=True)
class SecondsLayout:
    """Seconds of one phase by region (R,), by iteration (I,) and by processor (Q,); all add up to the same."""

    regions: FloatArray
    iterations: FloatArray
    processors: FloatArray

    def add_layout(self, other: SecondsLayout, factor: float = 1.0) -> None:
        """Add ``factor`` times ``other`` to the values."""
        for mine, others in zip(self.as_tuple, other.as_tuple, strict=True):
            mine += factor * others

    def scale_by(self, factor: float) -> SecondsLayout:
        """Return ``factor`` times these seconds."""
        return SecondsLayout(*(factor * part for part in self.as_tuple))

    @property
    def as_tuple(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the three layouts."""
        return self.regions, self.iterations, self.processors


@dataclass(frozen=True, slots=True)
class BlockPlane:
    """One block of one array, added up over the regions: seconds (Q, iterations of the block).

    ``shared`` is the part outside parallel regions; it is absent where there is none, or every rank has one thread.
    """

    own: FloatArray
    shared: FloatArray | None

    def processor_loads(self, team: RankThreads) -> FloatArray:
        """Return the loads of the processors."""
        if self.shared is None:
            return self.own
        load: FloatArray = self.shared[team.master]
        load[team.master] = 0.0
        load += self.own
        return load


class PhaseArrays:
    """The arrays of one phase, and the sums over them that have been made so far.

    ``own`` holds by measure what was spent, ``charged`` what the processors' loads add to that.
    """

    def __init__(self, phase: Phase, regions: Sequence[Region], team: RankThreads, measures: Sequence[str]) -> None:
        self.arrays = {name: np.asarray(phase.arrays[name]) for name in measures}
        self.team = team
        self.regions, self.processors, self.iterations = len(phase.regions), len(team.master), phase.iterations
        self.shared: npt.NDArray[np.bool_] = np.array([not regions[r].threaded for r in phase.regions], dtype=bool)
        self.own = {name: self.make_layout() for name in measures}
        self.charged = {name: self.make_layout() for name in measures} if team.is_hybrid else {}

    def make_layout(self) -> SecondsLayout:
        """Return a layout of zeros."""
        return SecondsLayout(np.zeros(self.regions), np.zeros(self.iterations), np.zeros(self.processors))

    def sum_block(self, part: slice) -> dict[str, BlockPlane]:
        """Add the iterations of ``part`` to the sums and return their planes by measure."""
        return {name: self._sum_measure(name, part) for name in self.own}

    def _sum_measure(self, name: str, part: slice) -> BlockPlane:
        array, own = self.arrays[name], self.own[name]
        if self.regions == 1:
            plane = array[0, :, part]
            seconds = plane @ np.ones(plane.shape[1])
            own.regions[0] += seconds.sum()
            own.processors[:] += seconds
            shared = plane if self.shared[0] else None
        else:
            plane, shared = self._add_regions(name, part)
        own.iterations[part] = np.ones(self.processors) @ plane
        if not self.team.is_hybrid or shared is None:
            return BlockPlane(plane, None)
        self._charge_followers(name, part, shared)
        return BlockPlane(plane, shared)

    def _add_regions(self, name: str, part: slice) -> tuple[FloatArray, FloatArray | None]:
        """Add up all regions, several at a time; return their sum and that of those outside parallel regions."""
        array, own, width = self.arrays[name], self.own[name], part.stop - part.start
        plane: FloatArray = np.zeros((self.processors, width))
        shared = np.zeros_like(plane) if self.team.is_hybrid and self.shared.any() else None
        height = max(1, BLOCK // (self.processors * width))
        for start in range(0, self.regions, height):
            rows = slice(start, start + height)
            block = array[rows, :, part]
            plane += block[0] if len(block) == 1 else block.sum(axis=0)
            seconds = block @ np.ones(width)
            own.regions[rows] += seconds.sum(axis=1)
            own.processors[:] += seconds.sum(axis=0)
            if shared is not None:
                chosen = self.shared[rows]
                shared += block[chosen].sum(axis=0)
                self.charged[name].regions[rows][chosen] += seconds[chosen] @ self.team.followers
        return plane, shared

    def _charge_followers(self, name: str, part: slice, shared: FloatArray) -> None:
        """Add what the followers of each processor are charged with; it is booked where it was spent."""
        charged, followers = self.charged[name], self.team.followers
        seconds = followers * shared.sum(axis=1)
        charged.processors[:] += seconds
        charged.iterations[part] = followers @ shared
        if self.regions == 1:
            charged.regions[0] += seconds.sum()

    def sum_planes(self, terms: Terms, planes: Mapping[str, BlockPlane]) -> BlockPlane:
        """Return the signed sum of planes."""
        own = _signed_sum([(planes[name].own, sign) for name, sign in terms])
        shared = [(plane, sign) for name, sign in terms if (plane := planes[name].shared) is not None]
        return BlockPlane(own, _signed_sum(shared) if shared else None)

    def sum_spent(self, terms: Terms) -> SecondsLayout:
        """Return the signed sum of what all processors spent; not to be changed."""
        return self._sum_layouts(self.own, terms)

    def sum_loads(self, terms: Terms) -> SecondsLayout:
        """Return the signed sum of the loads of all processors, booked where they were spent; not to be changed."""
        if not self.charged:
            return self.sum_spent(terms)
        total = self.make_layout()
        total.add_layout(self.sum_spent(terms))
        total.add_layout(self._sum_layouts(self.charged, terms))
        return total

    def _sum_layouts(self, layouts: Mapping[str, SecondsLayout], terms: Terms) -> SecondsLayout:
        if len(terms) == 1 and terms[0][1] == 1.0:
            return layouts[terms[0][0]]
        total = self.make_layout()
        for name, sign in terms:
            total.add_layout(layouts[name], sign)
        return total

    def processor_loads(self, terms: Terms) -> FloatArray:
        """Return the load of each processor (Q,) over what has been read."""
        own = self.sum_spent(terms).processors
        if not self.team.is_hybrid:
            return own
        load, masters = own.copy(), self.team.master[self.team.others]
        load[self.team.others] += (
            self._sum_layouts(self.charged, terms).processors[masters] / self.team.followers[masters]
        )
        return load

    def add_processor_loads(self, terms: Terms, who: IntArray, part: slice, into: SecondsLayout) -> None:
        """Add to ``into`` the load of processor ``who[i]`` in each iteration of ``part``, booked where it was spent."""
        column = np.arange(part.start, part.stop)
        own = _signed_sum([(self.arrays[name][:, who, column], sign) for name, sign in terms])
        self._add_seconds(own, np.arange(self.regions), who, part, into)
        boss = self.team.master[who]
        if (boss == who).all():
            return
        rows = np.flatnonzero(self.shared)
        more = _signed_sum([(self.arrays[name][rows[:, None], boss, column], sign) for name, sign in terms])
        self._add_seconds(more * (boss != who), rows, boss, part, into)

    def _add_seconds(
        self, seconds: FloatArray, rows: IntArray, who: IntArray, part: slice, into: SecondsLayout
    ) -> None:
        """Add ``seconds`` (rows, iterations of ``part``) of processors ``who`` to a layout."""
        each = seconds.sum(axis=0)
        into.regions[rows] += seconds.sum(axis=1)
        into.iterations[part] += each
        into.processors[:] += sum_by_group(who, each, self.processors)

    def split_iterations(self) -> list[slice]:
        """Return the iterations in parts that fit into the cache."""
        size = max(FEWEST, BLOCK // max(self.processors, self.regions))
        return [slice(i, min(i + size, self.iterations)) for i in range(0, self.iterations, size)]


def _signed_sum(terms: Sequence[tuple[FloatArray, float]]) -> FloatArray:
    """Return the signed sum of arrays; a single positive one as it is, without a copy."""
    first, sign = terms[0]
    if len(terms) == 1 and sign == 1.0:
        return first
    total: FloatArray = first * sign
    for array, factor in terms[1:]:
        if factor == 1.0:
            total += array
        elif factor == -1.0:
            total -= array
        else:
            total += factor * array
    return total
