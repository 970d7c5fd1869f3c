"""The distributions against SciPy, and against identities where SciPy itself loses digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis import distributions

special = pytest.importorskip("scipy.special", reason="SciPy is what the distributions are compared with")

FREEDOM = st.floats(0.5, 5_000.0)


@given(st.floats(-60.0, 60.0), FREEDOM)
def test_probabilities_of_student_t_are_those_of_scipy(value: float, freedom: float) -> None:
    expected = float(special.stdtr(freedom, value))
    assert distributions.student_t_probability(value, freedom) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(st.floats(1e-12, 0.45), st.floats(1.0, 5_000.0))
def test_quantiles_of_student_t_are_those_of_scipy(probability: float, freedom: float) -> None:
    expected = float(special.stdtrit(freedom, probability))
    assert distributions.student_t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-12)
    above = 1.0 - probability
    assert distributions.student_t_quantile(above, freedom) == -distributions.student_t_quantile(1.0 - above, freedom)


@given(st.floats(-1e-3, 1e-3).filter(lambda off: abs(off) > 1e-12))
def test_quantiles_near_the_median_keep_their_digits(off: float) -> None:
    """Cauchy's distribution has a closed form: tan(pi (p - 1/2)); SciPy has some nine digits here."""
    probability = 0.5 + off
    expected = math.tan(math.pi * (probability - 0.5))
    assert distributions.student_t_quantile(probability, 1.0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("freedom", [1.0, 2.5, 30.0, 1_000.0])
@pytest.mark.parametrize("probability", [1e-280, 1e-30, 0.2499, 0.2501, 0.5, 0.75, 0.999])
def test_a_quantile_has_its_probability(probability: float, freedom: float) -> None:
    if probability < 1e-200 and freedom == 1.0:
        expected = -1.0 / (math.pi * probability)  # Cauchy's tail
        assert distributions.student_t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-12)
    quantile = distributions.student_t_quantile(probability, freedom)
    assert distributions.student_t_probability(quantile, freedom) == pytest.approx(probability, rel=1e-11)


def test_the_ends_of_the_distribution() -> None:
    assert distributions.student_t_quantile(0.0, 3.0) == -math.inf
    assert distributions.student_t_quantile(1.0, 3.0) == math.inf
    assert distributions.student_t_probability([-math.inf, 0.0, math.inf], 3.0).tolist() == [0.0, 0.5, 1.0]
    assert math.isnan(float(distributions.student_t_probability(math.nan, 3.0)))
    for probability, freedom in ((-0.1, 3.0), (1.1, 3.0), (0.5, 0.0), (math.nan, 3.0)):
        with pytest.raises(ValueError, match="no quantile"):
            distributions.student_t_quantile(probability, freedom)


def test_values_and_degrees_of_freedom_are_broadcast() -> None:
    values, freedom = np.linspace(-3.0, 3.0, 8), np.array([[1.0], [4.5]])
    table = distributions.student_t_probability(values, freedom)
    assert table.shape == (2, 8)
    np.testing.assert_allclose(table, special.stdtr(freedom, values), rtol=1e-13)


@given(st.floats(-50.0, 50.0), FREEDOM)
def test_the_density_of_student_t_is_that_of_scipy(value: float, freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = float(stats.t.pdf(value, freedom))
    assert distributions.student_t_density(value, freedom) == pytest.approx(expected, rel=1e-11, abs=1e-300)


@given(st.floats(1e-3, 1e8))
def test_gamma_functions_are_those_of_scipy(x: float) -> None:
    assert distributions.trigamma(x) == pytest.approx(float(special.polygamma(1, x)), rel=1e-12)
    assert distributions.log_gamma(np.array([[x]])) == pytest.approx(special.gammaln(np.array([[x]])), rel=1e-12)
    assert distributions.gamma_ratio(x) == pytest.approx(float(special.poch(x, 0.5)), rel=1e-8)


@given(st.floats(1e-3, 80.0))
def test_ratios_of_gamma_functions_have_all_digits(x: float) -> None:
    assert distributions.gamma_ratio(x) == pytest.approx(math.gamma(x + 0.5) / math.gamma(x), rel=1e-13)


def test_trigamma_of_nothing_above_zero_is_refused() -> None:
    for x in (0.0, -1.5, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            distributions.trigamma(x)
