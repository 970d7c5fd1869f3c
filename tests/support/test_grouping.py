from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.support.grouping import number_values, sum_by_group


def test_sums_adds_by_group() -> None:
    assert sum_by_group(np.array([0, 2, 0]), np.array([1.0, 5.0, 2.0]), 4).tolist() == pytest.approx(
        [3.0, 0.0, 5.0, 0.0]
    )


def test_sums_of_nothing_are_seconds_too() -> None:
    nothing = sum_by_group(np.zeros(0, dtype=np.int64), np.zeros(0), 2)
    assert (nothing.dtype, nothing.tolist()) == (np.float64, [0.0, 0.0])


@given(st.lists(st.integers(0, 9)), st.sampled_from((10, 10**15)))
def test_numbered_is_what_unique_gives(values: list[int], limit: int) -> None:
    some = np.array(values, dtype=np.int64)
    different, number = number_values(some, limit)
    expected, inverse = np.unique(some, return_inverse=True)
    assert different.tolist() == expected.tolist()
    assert number.tolist() == inverse.tolist()
