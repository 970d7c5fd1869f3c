"""Values added up by group: the step from rows to regions, processors, phases and causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray


#: Times as many numbers as values from which on sorting the values takes less time than going through the numbers.
_SPARSE = 16


def number_values(values: IntArray, limit: int) -> tuple[IntArray, IntArray]:
    """Return the different ones of ``values``, all from 0 on and below ``limit``, and the number of each among them."""
    if limit > _SPARSE * (len(values) + 1):
        different, number = np.unique(values, return_inverse=True)
        return different, number.astype(np.int64, copy=False)
    among = np.zeros(limit, dtype=np.bool_)
    among[values] = True
    number = np.cumsum(among) - 1
    return np.flatnonzero(among), number[values]


def sum_by_group(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """Return the sum of ``values`` in each of ``groups`` groups, (groups,); ``group`` numbers that of each value."""
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)
