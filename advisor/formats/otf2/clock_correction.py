"""How the clock of a location is corrected: by offsets measured now and then, interpolated in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class ClockCorrection:
    """Intervals in the order of time, with the offset at the begin of each and its change per tick (all in ticks).

    A time belongs to the first interval that ends at it or later, else to the last one; without intervals it stays.
    """

    begin: npt.NDArray[np.uint64]
    end: npt.NDArray[np.uint64]
    offset: IntArray
    slope: FloatArray

    @classmethod
    def make_identity(cls) -> Self:
        """Return the correction that changes nothing."""
        return cls.from_points([])

    @classmethod
    def from_points(cls, points: Sequence[tuple[int, int]]) -> Self:
        """Return the correction by measured (time, offset), in the order of time."""
        pairs = list(pairwise(points))
        return cls(
            begin=np.array([one[0] for one, _ in pairs], dtype=np.uint64),
            end=np.array([other[0] for _, other in pairs], dtype=np.uint64),
            offset=np.array([one[1] for one, _ in pairs], dtype=np.int64),
            slope=np.array([(other[1] - one[1]) / float(other[0] - one[0]) for one, other in pairs], dtype=np.float64),
        )

    def correct_times(self, times: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the times with offset + slope * (time - begin of the interval) added, rounded to a tick."""
        if not len(self.begin):
            return times
        interval = np.minimum(np.searchsorted(self.end, times), len(self.end) - 1)
        begin = self.begin[interval]
        since = np.where(times >= begin, (times - begin).astype(np.float64), -(begin - times).astype(np.float64))
        with np.errstate(invalid="ignore"):  # absurd offsets of damaged archives
            offset = self.offset[interval] + np.rint(self.slope[interval] * since).astype(np.int64)
        return times + offset.view(np.uint64)
