"""Values added up by group: the step from rows to regions, processors, phases and causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    WholeNumbers = IntArray | npt.NDArray[np.int32]


#: Times as many numbers as values from which on sorting the values takes less time than going through the numbers.
_SPARSE = 16


def number_values(values: WholeNumbers, limit: int) -> tuple[IntArray, IntArray]:
    """Return the different ones of ``values``, all from 0 on and below ``limit``, and the number of each among them."""
    if limit > _SPARSE * (len(values) + 1):
        different, number = np.unique(values, return_inverse=True)
        return different.astype(np.int64, copy=False), number.astype(np.int64, copy=False)
    among = np.zeros(limit, dtype=np.bool_)
    among[values] = True
    number = np.cumsum(among) - 1
    return np.flatnonzero(among), number[values]


def group_rows(columns: Sequence[WholeNumbers]) -> tuple[IntArray, IntArray]:
    """Return the group of each row of the columns, and the first row of each group, in the order of their values.

    What ``numpy.unique`` with ``axis=0`` says of the stacked columns, without comparing whole rows: columns join one by
    one to a single number, which is counted anew where it would become too large.
    """
    rows = len(columns[0])
    group, groups = np.zeros(rows, dtype=np.int64), min(rows, 1)
    for column in columns if rows else ():
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if groups * span > _SPARSE * (rows + 1):
            different, group = number_values(group, groups)
            groups = len(different)
        group, groups = group * span + (column - low), groups * span
    different, group = number_values(group, groups)
    first = np.empty(len(different), dtype=np.int64)
    first[group[::-1]] = np.arange(rows - 1, -1, -1)  # of several rows the first is written last
    return group, first


def iterate_groups(group: WholeNumbers) -> Iterator[tuple[int, IntArray]]:
    """Yield each different number in ``group`` (rows,), in ascending order, with the rows that have it, in theirs."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(order)])
    for begin, end in pairwise([*begins.tolist(), len(order)]):
        yield int(ordered[begin]), order[begin:end]


def sum_by_group(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """Return the sum of ``values`` in each of ``groups`` groups, (groups,); ``group`` numbers that of each value."""
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)


def spread_medians(group: WholeNumbers, values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the median of each value's group, and how many are in it, both (rows,)."""
    order = np.lexsort((values, group))
    first = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0][: len(order)])
    size = np.diff(np.r_[first, len(order)])
    middle = (values[order[first + (size - 1) // 2]] + values[order[first + size // 2]]) / 2
    median, members = np.empty(len(order)), np.empty(len(order), dtype=np.int64)
    median[order], members[order] = np.repeat(middle, size), np.repeat(size, size)
    return median, members
