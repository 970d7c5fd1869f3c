"""Fitting models of growth: what is known to be true is found, and intervals hold as often as they say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_truth import DOUBLING, EVEN, EXPONENTS, Spread, cases

from advisor_scaling import engine, equations, forecasts, posterior, repeats, terms
from advisor_scaling.terms import Factor

POINTS = np.array(DOUBLING[:5])[:, None]


def fitted(
    values: np.ndarray, parameters: tuple[str, ...] = ("N",), points: np.ndarray = POINTS
) -> engine.FittedModels:
    return engine.fit_models(parameters, points, np.repeat(values[None, :, None], 3, axis=2))


def text(fits: engine.FittedModels, series: int = 0) -> str:
    return equations.export_equation(equations.build_equation(fits, series, "run"), "text")


@pytest.mark.parametrize("power", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)])
def test_exact_powers_are_found(power: Fraction) -> None:
    equation = equations.build_equation(fitted(2.0 + 0.5 * POINTS[:, 0] ** float(power)), 0, "run")
    assert [factor for term in equation.terms for _, factor in term.factors] == [Factor(power)]
    assert [term.coefficient for term in equation.terms] == pytest.approx([2.0, 0.5], rel=1e-6)


def test_what_does_not_grow_is_constant() -> None:
    assert text(fitted(np.array([3.0, 3.02, 2.99, 3.01, 3.0]))).startswith("T(N) = 3.0")


def test_work_divided_by_processors_and_a_tree_of_messages() -> None:
    points = np.array([(n, p) for n in (128.0, 256.0, 512.0, 1024.0) for p in (1.0, 2.0, 4.0, 8.0, 16.0)])
    n, p = points.T
    fits = fitted(3e-9 * n**3 / p + 2e-5 * np.log2(p) * n, ("N", "P"), points)
    said = forecasts.compute_forecast(fits, np.array([[4096.0, 256.0]])).value[0, 0]
    assert said == pytest.approx(3e-9 * 4096.0**3 / 256 + 2e-5 * 8 * 4096, rel=1e-3)
    assert "N^3 * P^(-1)" in text(fits)
    assert "N * log2(P)" in text(fits)


def test_a_working_set_that_leaves_the_cache() -> None:
    n = 2.0 ** np.arange(4, 13)
    noise = 1.0 + 0.002 * np.random.default_rng(3).uniform(-1, 1, (1, 9, 5))
    exact = np.where(n > 300, 5e-9, 1e-9) * n**2
    fits = engine.fit_models(("N",), n[:, None], exact[None, :, None] * noise)
    assert "[N > 362.039]" in text(fits)
    assert forecasts.compute_forecast(fits, np.array([[16384.0]])).value[0, 0] == pytest.approx(
        5e-9 * 16384**2, rel=0.02
    )


def test_what_saturates_stays_where_it_is() -> None:
    p = 2.0 ** np.arange(8)
    noise = 1.0 + 0.01 * np.random.default_rng(3).uniform(-1, 1, (1, 8, 5))
    fits = engine.fit_models(("P",), p[:, None], (8.0 / np.minimum(p, 16.0))[None, :, None] * noise)
    assert forecasts.compute_forecast(fits, np.array([[1024.0]])).value[0, 0] == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("axis", [DOUBLING, EVEN], ids=["doubling", "even"])
@pytest.mark.parametrize("spread", ["even", "magnitudes"])
def test_intervals_of_80_percent_hold_in_75_to_85_percent(axis: tuple[float, ...], spread: Spread) -> None:
    truth = cases(1, 1000, seed=2026, noise=0.05, axis=axis, spread=spread)
    fits = engine.fit_models(("x",), truth.points, truth.values)
    said = forecasts.compute_forecast(fits, truth.targets)
    for at in range(4):
        held = (said.low[:, at] <= truth.beyond[:, at]) & (truth.beyond[:, at] <= said.high[:, at])
        assert 0.75 <= held.mean() <= 0.85


@pytest.mark.parametrize("parameters", [2, 3])
def test_intervals_hold_with_more_parameters(parameters: int) -> None:
    truth = cases(parameters, 300, seed=2026)
    fits = engine.fit_models(("x", "y", "z")[:parameters], truth.points, truth.values)
    said = forecasts.compute_forecast(fits, truth.targets[3:])
    held = (said.low[:, 0] <= truth.beyond[:, 3]) & (truth.beyond[:, 3] <= said.high[:, 0])
    assert 0.74 <= held.mean() <= 0.86


@pytest.mark.parametrize("axis", [DOUBLING, EVEN], ids=["doubling", "even"])
@pytest.mark.parametrize("spread", ["even", "magnitudes"])
def test_the_highest_power_is_right_to_a_quarter_in_nearly_nine_of_ten_cases(
    axis: tuple[float, ...], spread: Spread
) -> None:
    truth = cases(1, 1000, seed=7, axis=axis, spread=spread)
    fits = engine.fit_models(("x",), truth.points, truth.values)
    assert (np.abs(forecasts.central_powers(fits) - truth.powers) <= forecasts.WITHIN + 1e-9).all(axis=1).mean() >= 0.87


def test_the_sum_that_stands_for_all_is_a_probable_one() -> None:
    fits = engine.fit_models(("x",), (truth := cases(1, 200, seed=8, axis=EVEN)).points, truth.values)
    shares = fits.candidates.probability
    assert (shares[np.arange(200), forecasts.representative_sums(fits)] >= 0.1 * shares.max(axis=1)).all()


def test_the_library_holds_every_term_that_extra_p_searches_once() -> None:
    grown = terms.build_library("x", np.array(DOUBLING[:5])).factors[1:]
    assert [(factor.power, factor.logs) for factor in grown] == list(EXPONENTS)
    assert len(set(grown)) == len(EXPONENTS) == 42


def test_a_disturbed_repeat_changes_nothing() -> None:
    truth = cases(1, 50, seed=1)
    disturbed = truth.values.copy()
    disturbed[:, 2, 1] *= 4.0
    plain, other = (engine.fit_models(("x",), truth.points, each) for each in (truth.values, disturbed))
    assert (other.averaged.dropped >= 1).all()
    assert np.median(other.averaged.dropped) == 1
    one, two = (forecasts.compute_forecast(each, truth.targets[:1]).value for each in (plain, other))
    assert np.median(np.abs(two / one - 1)) < 0.01


def test_a_disturbed_point_is_left_out() -> None:
    n = 2.0 ** np.arange(4, 14)
    noise = 1.0 + 0.01 * np.random.default_rng(1).uniform(-1, 1, (1, 10, 3))
    measured = 1e-6 * (n**1.5)[None, :, None] * noise
    measured[0, 4] *= 3.0
    fits = engine.fit_models(("N",), n[:, None], measured)
    assert fits.left_out[0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_a_point_counts_by_the_spread_of_its_repeats() -> None:
    values = np.array([[[1.0, 1.0, 1.01, 0.99], [2.0, 1.5, 2.5, 2.0], [3.0, 3.01, 2.99, 3.0]] * 3])
    variance = repeats.average_repeats(values).variance[0]
    assert variance[1] > 4 * variance[0]


@given(st.lists(st.floats(1e-6, 1e6), min_size=4, max_size=7), st.floats(1.0, 1e4))
@settings(max_examples=60, deadline=None)
def test_no_time_is_negative_anywhere(values: list[float], target: float) -> None:
    points = 2.0 ** np.arange(len(values))[:, None]
    fits = engine.fit_models(("P",), points, np.array(values)[None, :, None])
    said = forecasts.compute_forecast(fits, np.array([[target]]))
    assert 0.0 <= said.low[0, 0] <= said.value[0, 0] <= said.high[0, 0]
    equation = equations.build_equation(fits, 0, "run")
    assert all(term.coefficient > 0 for term in equation.terms)


@given(st.floats(1e-6, 1e6))
@settings(max_examples=20, deadline=None)
def test_the_unit_of_time_does_not_matter(unit: float) -> None:
    truth = cases(1, 3, seed=4)
    one, two = (
        forecasts.compute_forecast(engine.fit_models(("x",), truth.points, truth.values * by), truth.targets).value
        for by in (1.0, unit)
    )
    assert two == pytest.approx(one * unit, rel=1e-6)


def test_series_do_not_disturb_each_other() -> None:
    truth = cases(2, 5, seed=4)
    together = forecasts.compute_forecast(
        engine.fit_models(("x", "y"), truth.points, truth.values), truth.targets
    ).value
    alone = forecasts.compute_forecast(
        engine.fit_models(("x", "y"), truth.points, truth.values[3:4]), truth.targets
    ).value
    assert together[3] == pytest.approx(alone[0], rel=1e-9)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=2, max_size=2), min_size=1, max_size=12))
def test_of_equal_sums_only_the_first_keeps_its_worth(sums: list[list[int]]) -> None:
    worth = posterior.mask_repeated_sums(np.array([sums]), np.zeros((1, len(sums))))[0]
    seen = [sorted(each) for each in sums]
    assert [value == 0.0 for value in worth] == [each not in seen[:at] for at, each in enumerate(seen)]


def test_runs_of_which_no_two_differ_in_one_parameter_alone_are_fitted() -> None:
    points = np.array([[8.0, 8.0], [16.0, 4.0], [20.0, 1.0], [20.5, 2.0]])
    values = (points[:, 0] / points[:, 1])[None, :, None]
    assert terms.find_falling(points, values[..., 0]) == [False, False]
    assert np.isfinite(forecasts.compute_forecast(engine.fit_models(("N", "P"), points, values), points).value).all()


def test_a_remainder_of_the_fit_is_no_time() -> None:
    ranks = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
    values = np.where(ranks[:, 0] > 1, 1e-3, 0.0)[None, :, None]
    found = forecasts.compute_forecast(engine.fit_models(("P",), ranks, values), ranks)
    assert found.value[0, 0] == 0.0
    assert found.value[0, 1] == pytest.approx(1e-3, rel=0.02)


def test_a_parameter_must_be_above_zero() -> None:
    with pytest.raises(ValueError, match="above zero"):
        engine.fit_models(("N",), np.array([[0.0], [1.0], [2.0]]), np.ones((1, 3, 1)))


def test_logarithms_are_not_tried_below_one() -> None:
    assert all(factor.logs == 0 for factor in terms.build_library("x", np.array([0.5, 1.0, 2.0])).factors)
