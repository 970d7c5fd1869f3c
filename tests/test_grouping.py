from __future__ import annotations

import numpy as np
import pytest

from advisor.grouping import sums


def test_sums_adds_by_group() -> None:
    assert sums(np.array([0, 2, 0]), np.array([1.0, 5.0, 2.0]), 4).tolist() == pytest.approx([3.0, 0.0, 5.0, 0.0])


def test_sums_of_nothing_are_seconds_too() -> None:
    nothing = sums(np.zeros(0, dtype=np.int64), np.zeros(0), 2)
    assert (nothing.dtype, nothing.tolist()) == (np.float64, [0.0, 0.0])
