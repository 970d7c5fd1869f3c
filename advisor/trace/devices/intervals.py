"""Sets of intervals of time as two sorted columns, and which of them hold given moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray


class Intervals(NamedTuple):
    """Disjoint intervals in order, seconds."""

    start_s: FloatArray
    end_s: FloatArray

    def hold_moments(self, moments_s: FloatArray) -> BoolArray:
        """Return which of the moments lie inside."""
        place = np.searchsorted(self.start_s, moments_s, side="right") - 1
        inside = place >= 0
        inside[inside] = moments_s[inside] < self.end_s[place[inside]]
        return inside

    def cover_until(self, moments_s: FloatArray) -> FloatArray:
        """Return how many seconds of the intervals lie before each of the moments."""
        if not len(self.start_s):
            return np.zeros(len(moments_s))
        edges = np.stack([self.start_s, self.end_s], axis=1).reshape(-1)
        seconds = np.repeat(np.cumsum(self.end_s - self.start_s), 2)
        seconds[::2] = np.r_[0.0, seconds[1:-1:2]]
        return np.interp(moments_s, edges, seconds)

    @property
    def length_s(self) -> float:
        """The seconds of all intervals."""
        return float((self.end_s - self.start_s).sum())


def merge_intervals(start_s: FloatArray, end_s: FloatArray) -> Intervals:
    """Return the union of intervals, which may overlap and come in any order."""
    if not len(start_s):
        return Intervals(np.zeros(0), np.zeros(0))
    order = np.argsort(start_s, kind="stable")
    start, reach = start_s[order], np.maximum.accumulate(end_s[order])
    first = np.r_[True, start[1:] > reach[:-1]]
    last = np.r_[first[1:], True]
    kept = reach[last] > start[first]
    return Intervals(start[first][kept], reach[last][kept])


def find_covering(start_s: FloatArray, end_s: FloatArray, moments_s: FloatArray) -> IntArray:
    """Return for each moment the interval that began last before it and goes on, -1 where none does.

    The intervals are sorted by start and nested properly: of two, one holds the other or they are apart.
    """
    place = np.searchsorted(start_s, moments_s, side="right") - 1
    parent = find_enclosing(start_s, end_s)
    found = place.copy()
    open_ = found >= 0
    while open_.any():
        over = open_.copy()
        over[open_] = moments_s[open_] >= end_s[found[open_]]
        found[over] = parent[found[over]]
        open_ = over & (found >= 0)
    return found


def find_enclosing(start_s: FloatArray, end_s: FloatArray) -> IntArray:
    """Return for each interval the one it lies in, -1 for none."""
    parent: IntArray = np.full(len(start_s), -1, dtype=np.int64)
    if len(start_s) < 2 or (start_s[1:] >= end_s[:-1]).all():
        return parent
    stack: list[int] = []
    ends = end_s.tolist()
    for number, begin in enumerate(start_s.tolist()):
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        if stack:
            parent[number] = stack[-1]
        stack.append(number)
    return parent
