"""Sets of intervals against a count moment by moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.trace.devices.intervals import merge_intervals

_SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=12)


@given(_SPANS)
def test_seconds_covered_until_a_moment(spans: list[tuple[int, int]]) -> None:
    start = np.array([begin for begin, _ in spans], dtype=float)
    end = np.array([begin + length for begin, length in spans], dtype=float)
    covered = [any(begin <= at < begin + length for begin, length in spans) for at in range(60)]
    found = merge_intervals(start, end).cover_until(np.arange(61.0))
    assert found.tolist() == [float(sum(covered[:at])) for at in range(61)]
