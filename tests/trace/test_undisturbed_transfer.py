"""What calls transfer at least, as equal ones prove it."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.trace.counts import find_quick_seconds, sum_undisturbed_transfer


def test_calls_that_waited_for_a_core_count_as_the_quickest_quarter_of_their_equals() -> None:
    seconds = np.r_[np.full(10, 1e-6), np.full(20, 0.02), np.full(10, 3e-6)]
    cell, size = np.zeros(40, dtype=np.int64), np.full(40, 8)
    assert sum_undisturbed_transfer(cell, size, seconds, 2) == pytest.approx([40e-6, 0.0])


def test_calls_of_other_places_and_sizes_are_no_equals_and_few_prove_nothing() -> None:
    seconds = np.r_[np.full(8, 1e-6), np.full(8, 1e-3), np.full(7, 1.0)]
    cell = np.r_[np.zeros(16, dtype=np.int64), np.full(7, 2)]
    size = np.r_[np.full(8, 8), np.full(8, 1 << 20), np.full(7, -1)]
    assert sum_undisturbed_transfer(cell, size, seconds, 3) == pytest.approx([8e-6 + 8e-3, 0.0, 0.0])
    assert find_quick_seconds(np.zeros(7, dtype=np.int64), seconds[:7]).tolist() == [np.inf]
    assert not len(find_quick_seconds(np.zeros(0, dtype=np.int64), np.zeros(0)))


def test_a_hundredth_without_disturbance_is_enough() -> None:
    seconds = np.r_[np.full(396, 0.002), np.full(4, 40e-6)]
    found = sum_undisturbed_transfer(np.zeros(400, dtype=np.int64), np.full(400, 1 << 15), seconds, 1)
    assert found == pytest.approx([400 * 40e-6])
