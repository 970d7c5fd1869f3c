"""What ranks did of a sum over all of them: whatever is estimated, sums stay and nothing is negative."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from darshan_logs import log, table
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from advisor.formats.darshan.cells import build_cells
from advisor.formats.darshan.rank_shares import (
    RankExtreme,
    balance_shares,
    compute_remaining_heat,
    round_shares,
    share_among_ranks,
)
from advisor.formats.darshan.rows import build_data_rows

seconds = st.floats(0.0, 1e6)
extremes = st.builds(RankExtreme, st.integers(-1, 9), st.floats(-1.0, 1e6))


@given(seconds, st.integers(1, 8), extremes, extremes)
@example(4.0, 1, RankExtreme(0, 0.0), RankExtreme(0, sys.float_info.min))
def test_parts_of_ranks_add_up(total: float, ranks: int, fastest: RankExtreme, slowest: RankExtreme) -> None:
    found = share_among_ranks(total, ranks, fastest, slowest)
    assert found.shape == (ranks,)
    assert found.sum() == pytest.approx(total, rel=1e-9)
    assert (found >= 0).all()


def test_two_ranks_are_known_and_the_others_equal() -> None:
    assert share_among_ranks(10.0, 4, RankExtreme(3, 1.0), RankExtreme(0, 5.0)).tolist() == [5.0, 2.0, 2.0, 1.0]
    assert share_among_ranks(10.0, 2, RankExtreme(-1, 0.0), RankExtreme(-1, 0.0)).tolist() == [5.0, 5.0]


@given(
    npst.arrays(np.float64, 3, elements=seconds),
    npst.arrays(np.float64, 4, elements=seconds),
    npst.arrays(np.float64, (3, 4), elements=st.floats(0.0, 1e9)),
)
def test_kinds_keep_their_sums(of_kind: np.ndarray, of_rank: np.ndarray, weights: np.ndarray) -> None:
    found = balance_shares(of_kind, of_rank, weights)
    assert found.sum(axis=1) == pytest.approx(of_kind, rel=1e-6, abs=1e-9)
    assert (found >= 0).all()


def test_who_moved_nothing_spent_nothing_on_it() -> None:
    weights = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    found = balance_shares(np.array([1.0, 2.0, 4.0]), np.array([4.0, 3.0]), weights)
    assert found == pytest.approx(np.array([[0.0, 1.0], [2.0, 0.0], [2.0, 2.0]]), abs=1e-6)


@given(st.integers(0, 10**15), npst.arrays(np.float64, st.integers(1, 9), elements=st.floats(0.0, 1e9)))
def test_whole_numbers_add_up(total: int, weights: np.ndarray) -> None:
    found = round_shares(total, weights)
    assert int(found.sum()) == total
    assert (found >= 0).all()


def test_a_heat_map_that_does_not_fit_is_not_believed() -> None:
    heat, known = np.array([10.0, 30.0]), np.array([10.0, 0.0])
    left = compute_remaining_heat(heat, known, 30.0)
    assert left is not None
    assert left.tolist() == [0.0, 30.0]
    assert compute_remaining_heat(heat, known, 40.0) is None


counts = st.lists(st.integers(0, 1000), min_size=10, max_size=10)
SIZES = ["0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS"]


@given(counts, st.integers(0, 10**12), st.integers(0, 20_000))
def test_classes_of_size_keep_operations_bytes_and_seconds(sized: list[int], moved: int, unaligned: int) -> None:
    columns = {f"SIZE_WRITE_{name}": [float(count)] for name, count in zip(SIZES, sized, strict=True)}
    total, unaligned = sum(sized), min(unaligned, sum(sized))
    made = table("POSIX", None, None, WRITES=[total], BYTES_WRITTEN=[moved], WRITE=[2.0],
                 FILE_NOT_ALIGNED=[unaligned], **columns)  # fmt: skip
    found = build_data_rows(build_cells(log({"POSIX": made}), "POSIX"), made, {})
    assert found.seconds.sum() == pytest.approx(2.0)
    assert found.count.sum() == total
    assert found.count[found.alignment == 2].sum() == unaligned
    assert found.bytes.sum() == (moved if total else 0)
    assert (found.bytes >= 0).all()
