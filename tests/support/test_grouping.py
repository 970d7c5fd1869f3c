from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.support.grouping import group_rows, iterate_groups, number_values, spread_medians, sum_by_group


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


@pytest.mark.parametrize("spread", [1, 3, 1000, 10**9])
@pytest.mark.parametrize("rows", [0, 1, 2, 500])
def test_rows_are_grouped_as_numpy_groups_them(rows: int, spread: int) -> None:
    random = np.random.default_rng(rows + spread)
    columns = tuple(random.integers(-1, spread, rows) // each for each in (1, 2, 1, max(spread // 3, 1), 5))
    _, first, group = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    mine = group_rows(columns)
    assert np.array_equal(mine[0], group.reshape(-1))
    assert np.array_equal(mine[1], first)


@given(st.lists(st.integers(-2, 5)))
def test_groups_are_the_rows_of_each_number(values: list[int]) -> None:
    found = {number: rows.tolist() for number, rows in iterate_groups(np.array(values, dtype=np.int64))}
    assert list(found) == sorted(set(values))
    assert found == {number: [row for row, one in enumerate(values) if one == number] for number in found}


@given(st.lists(st.tuples(st.integers(-1, 3), st.floats(-9, 9))))
def test_each_value_is_told_the_median_of_its_group(pairs: list[tuple[int, float]]) -> None:
    group, values = (np.array([pair[at] for pair in pairs], dtype=kind) for at, kind in ((0, np.int64), (1, float)))
    median, members = spread_medians(group, values)
    assert median.tolist() == [float(np.median(values[group == one])) for one in group]
    assert members.tolist() == [int((group == one).sum()) for one in group]
