"""What a gain is expected to be beside the most that it can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.ranking.gains import cap_gain

SECONDS = st.floats(0.001, 100.0)


@given(low=SECONDS, more=SECONDS, high=SECONDS, most=SECONDS)
def test_a_gain_below_its_ceiling_is_as_unsure_as_before(low: float, more: float, high: float, most: float) -> None:
    expected_s, (low_s, high_s) = cap_gain(low + more, low, low + more + high, most)
    assert 0.0 < low_s < expected_s <= high_s <= most
    assert low_s / expected_s <= low / (low + more) * (1 + 1e-9)


def test_a_gain_that_its_ceiling_leaves_alone_stays() -> None:
    gain = (1.0, 0.5, 1.5)
    assert cap_gain(*gain, 2.0) == (1.0, (0.5, 1.5))
    assert cap_gain(*gain, 1.2) == (1.0, (0.5, 1.2))
    assert cap_gain(*gain, 0.8) == (0.8, (0.4, 0.8))
