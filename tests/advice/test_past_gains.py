"""What actions have won before is what they are expected to win."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean
from types import SimpleNamespace
from typing import Any

import advice_samples
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.explaining import action_explanations
from advisor.advice.ranking import ExpectedGain, history_gain


def test_one_share_says_nothing_about_the_spread() -> None:
    assert history_gain.compute_gain((0.4,), 10.0) == (4.0, 0.0, 10.0, "history")
    assert history_gain.compute_gain((-0.1,), 10.0) == (-1.0, -1.0, 10.0, "history")


def test_several_shares_have_a_prediction_interval() -> None:
    """By hand: mean 0.5, s 0.1, t of 90 % with two degrees of freedom 2.919986, times sqrt(4/3)."""
    expected, low, high, basis = history_gain.compute_gain((0.4, 0.5, 0.6), 10.0)
    assert (expected, basis) == (5.0, "history")
    assert (low, high) == pytest.approx((5.0 - 3.371709, 5.0 + 3.371709))


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=10), st.floats(0.001, 1e6))
def test_the_expected_gain_lies_in_its_interval(shares: list[float], ceiling_s: float) -> None:
    expected, low, high, _ = history_gain.compute_gain(shares, ceiling_s)
    assert expected == pytest.approx(mean(shares) * ceiling_s)
    assert low <= expected <= high


def test_what_a_simulation_says_is_corrected_by_what_was_won() -> None:
    """By hand: shares 0.4 (s 0.1) and 0.5; variance (2·0.01 + 0.005)/3·1.5; t of 90 %, three degrees, 2.353363."""
    said = ExpectedGain(4.0, 4.0 - 1.2816, 4.0 + 1.2816, "simulation")
    expected, low, high, basis = history_gain.correct_gain((0.5,), 10.0, said)
    assert (expected, basis) == (pytest.approx(4.5), "history")
    assert (low, high) == pytest.approx((4.5 - 2.631139, 4.5 + 2.631139))
    assert history_gain.correct_gain((), 10.0, said) is said


def test_many_gains_outweigh_a_simulation() -> None:
    said = ExpectedGain(4.0, 3.9, 4.1, "simulation")
    few, many = (history_gain.correct_gain((0.6, 0.62) * n, 10.0, said) for n in (1, 50))
    assert few.expected_s < many.expected_s == pytest.approx(6.08, abs=0.03)
    assert many.high_s - many.low_s < few.high_s - few.low_s


def test_the_correction_is_explained_by_what_goes_into_it() -> None:
    item = replace(
        advice_samples.recommendation(), basis="history", ceiling_s=10.0, expected_s=4.5, interval_s=(1.8, 7.2)
    )
    draft: Any = SimpleNamespace(said_s=4.0)
    number = action_explanations._explain_expected_gain(draft, item, {item.action: (0.5,)}, "item 1")
    values = {one.name: one.value for one in number.inputs}
    assert (values["simulated"], values["share 1"]) == (pytest.approx(0.4), 0.5)
    assert "conjugate" in number.formula
    simulated, share, ceiling = (["input", at] for at in (2, 3, 4))
    assert number.expression == ["/", ["*", ["+", simulated, share], ceiling], 2]
