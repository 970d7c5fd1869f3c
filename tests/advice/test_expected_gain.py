"""What a gain is expected to be beside the most that it can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.ranking.gains import ExpectedGain

SECONDS = st.floats(0.001, 100.0)


@given(low=SECONDS, more=SECONDS, high=SECONDS, most=SECONDS)
def test_a_gain_below_its_ceiling_is_as_unsure_as_before(low: float, more: float, high: float, most: float) -> None:
    gain = ExpectedGain(low + more, low, low + more + high, "simulation")
    fit = gain.fit_below(most)
    assert 0.0 < fit.low_s < fit.expected_s <= fit.high_s <= most
    assert fit.low_s / fit.expected_s <= gain.low_s / gain.expected_s * (1 + 1e-9)


def test_a_gain_that_its_ceiling_leaves_alone_stays() -> None:
    gain = ExpectedGain(1.0, 0.5, 1.5, "simulation")
    assert gain.fit_below(2.0) == gain
    assert gain.fit_below(1.2) == gain._replace(high_s=1.2)
    assert gain.fit_below(0.8) == ExpectedGain(0.8, 0.4, 0.8, "simulation")
