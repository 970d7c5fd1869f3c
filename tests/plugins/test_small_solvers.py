"""Least squares without negative coefficients, trends and the simplex search, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_coupling import noise
from advisor_scaling.linear.nnls import solve_nnls
from advisor_simulation.replay.simplex import minimize_simplex

optimize = pytest.importorskip("scipy.optimize", reason="SciPy is what the solvers are compared with")
stats = pytest.importorskip("scipy.stats")

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 8), st.integers(1, 12))
def test_least_squares_without_negative_coefficients(seed: int, columns: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    design, values = random.normal(size=(rows, columns)), random.normal(size=rows)
    expected, residual = optimize.nnls(design, values)
    solved = solve_nnls(design, values)
    assert (solved >= 0.0).all()
    assert np.linalg.norm(design @ solved - values) == pytest.approx(residual, rel=1e-9, abs=1e-12)
    if rows >= columns:
        np.testing.assert_allclose(solved, expected, rtol=1e-7, atol=1e-9)


def test_columns_that_depend_on_each_other_and_problems_without_any() -> None:
    design = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [3.0, 6.0, 3.0000000001]])
    values = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(design @ solve_nnls(design, values), values, rtol=1e-9)
    assert solve_nnls(design, -values).tolist() == [0.0, 0.0, 0.0]
    assert solve_nnls(np.zeros((3, 0)), values).tolist() == []
    assert solve_nnls(np.zeros((3, 2)), values).tolist() == [0.0, 0.0]


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=33, unique=True))
def test_the_chance_of_a_trend_among_different_values_is_exact(values: list[float]) -> None:
    expected = stats.kendalltau(np.arange(len(values)), values, method="exact").pvalue
    assert noise.chance_of_trend(np.array(values)) == pytest.approx(float(expected), rel=1e-12)


@given(st.lists(st.integers(0, 5), min_size=3, max_size=60).filter(lambda values: len(set(values)) > 1))
def test_the_chance_of_a_trend_with_ties(values: list[int]) -> None:
    if len(set(values)) == len(values):
        return
    expected = stats.kendalltau(np.arange(len(values)), values, method="asymptotic").pvalue
    assert noise.chance_of_trend(np.array(values, dtype=float)) == pytest.approx(float(expected), rel=1e-12)


def test_values_that_are_all_the_same_have_no_trend() -> None:
    assert noise.chance_of_trend(np.ones(8)) == 1.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_the_median_slope_is_that_of_theil_and_sen(values: list[float]) -> None:
    rounds = np.arange(len(values))
    expected = float(stats.theilslopes(values, rounds)[0])
    assert noise.median_slope(rounds, np.array(values)) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(st.floats(-7.5, -3.2), st.floats(7.2, 11.4), st.floats(0.2, 5.0))
def test_the_simplex_finds_the_same_least_value(x: float, y: float, shape: float) -> None:
    """A function with a kink, as sums of absolute differences have; SciPy runs the same method."""

    def function(point: np.ndarray) -> float:
        return abs(point[0] - x) + shape * abs(point[1] - y) + 0.1 * (point[0] - x) ** 2

    bounds = np.array([(-8.0, -3.0), (7.0, 11.5)])
    start = np.array([-5.0, 9.0])
    found = minimize_simplex(function, start, bounds, evaluations=200, precision=1e-3)
    options = {"maxfev": 200, "xatol": 1e-3, "fatol": np.inf}
    expected = optimize.minimize(function, start, method="Nelder-Mead", bounds=bounds, options=options)
    np.testing.assert_allclose(found, expected.x, atol=1e-12)


def test_the_simplex_stays_within_its_bounds_and_its_evaluations() -> None:
    asked: list[np.ndarray] = []

    def function(point: np.ndarray) -> float:
        asked.append(point)
        return float(-point.sum())

    bounds = np.array([(-8.0, -3.0), (7.0, 11.5)])
    found = minimize_simplex(function, np.array([-3.0, 11.5]), bounds, evaluations=30, precision=0.0)
    assert found.tolist() == [-3.0, 11.5]
    assert all((bounds[:, 0] <= point).all() and (point <= bounds[:, 1]).all() for point in asked)
    assert len(asked) <= 33
