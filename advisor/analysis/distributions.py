"""Student's t distribution and the functions of gamma's family that fits need, in double precision with NumPy alone.

Sources: NIST Digital Library of Mathematical Functions (DLMF, https://dlmf.nist.gov); I. Thompson and A. Barnett,
Coulomb and Bessel functions of complex arguments and order, Journal of Computational Physics 64 (1986), for the
evaluation of continued fractions by Lentz's method. Quantiles of the normal distribution are the standard library's
(``statistics.NormalDist.inv_cdf``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray

#: Bernoulli numbers B2, B4, … B14, the coefficients of the asymptotic series.
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: From this argument on, the asymptotic series with these coefficients are exact to the last digit.
_LARGE: Final = 12
#: Terms and steps of Newton's method that are never reached: all end when they have converged.
_MOST_TERMS: Final = 10_000
_MOST_NEWTON_STEPS: Final = 200
_CONVERGED: Final = 4e-16
#: Steps of Newton's method square: behind one as small as this there is nothing but rounding, which never ends.
_LAST_STEP: Final = 1e-9
#: Up to this t the series of the middle needs some thirty terms, and 1/2 minus it loses no more than two digits.
_MIDDLE: Final = 2.0
#: A t that is infinite is computed with as this one, so that no quotient of two infinities comes up.
_NEARLY_INFINITE: Final = 1e300


def student_t_probability(value: npt.ArrayLike, freedom: npt.ArrayLike) -> FloatArray:
    """Return P(T <= ``value``) for Student's t with ``freedom`` > 0 degrees of freedom, which need not be whole.

    The arguments are broadcast against each other. The lower tail has a relative error below 1e-12 down to 1e-300 for
    up to 10,000 degrees of freedom, below 1e-9 for ten million; for the upper tail ask for ``-value``. NaN gives NaN.

    With x = freedom / (freedom + value²), the tail is I_x(freedom / 2, 1/2) / 2 (DLMF 8.17.1, 8.17.2).
    """
    t = np.asarray(value, dtype=np.float64)
    share, outside = _share_of_one_side(np.minimum(np.abs(t), _NEARLY_INFINITE), np.asarray(freedom, dtype=np.float64))
    tail = np.where(np.isinf(t), 0.0, np.where(outside, share, 0.5 - share))
    return np.asarray(np.where(t > 0.0, 1.0 - tail, tail))


def student_t_quantile(probability: float, freedom: float) -> float:
    """Return the t with P(T <= t) = ``probability`` for Student's t with ``freedom`` >= 1 degrees of freedom.

    Raises ``ValueError`` for a probability outside 0 to 1 or fewer degrees of freedom. Newton's method in logarithms:
    log P(T > exp(s)) and log P(0 < T < exp(s)) are concave in s (the density of log T is log-concave), so that after
    its first step it comes nearer from one side. It starts below the solution: at the normal quantile in the tail, on
    the tangent at 0 in the middle.
    """
    from statistics import NormalDist  # takes a while to load, and is rarely asked for

    if not (0.0 <= probability <= 1.0 and freedom >= 1.0):
        raise ValueError(f"no quantile of probability {probability} with {freedom} degrees of freedom")
    below = min(probability, 1.0 - probability)
    if below == 0.0 or probability == 0.5:
        return 0.0 if probability == 0.5 else math.copysign(math.inf, probability - 0.5)
    outside = below < 0.25
    wanted = math.log(below if outside else abs(probability - 0.5))
    nu = np.array(float(freedom))
    start = -NormalDist().inv_cdf(below) if outside else math.exp(wanted) / student_t_density(0.0, nu).item()
    log_t = math.log(start)
    for _ in range(_MOST_NEWTON_STEPS):
        t = math.exp(log_t)
        share, beyond = (part.item() for part in _share_of_one_side(np.array(t), nu))
        reached = share if beyond == outside else 0.5 - share
        slope = _density_of_logarithm(np.array(t), nu).item() / reached
        step = (wanted - math.log(reached)) / (-slope if outside else slope)
        log_t += step
        if abs(step) <= _LAST_STEP:
            break
    return math.copysign(math.exp(log_t), probability - 0.5)


def student_t_density(value: npt.ArrayLike, freedom: npt.ArrayLike) -> FloatArray:
    """Return the density of Student's t with ``freedom`` > 0 degrees of freedom at ``value``, broadcast."""
    nu = np.asarray(freedom, dtype=np.float64)
    ratio = np.abs(np.asarray(value, dtype=np.float64)) / np.sqrt(nu)
    return np.asarray(gamma_ratio(nu / 2) / np.sqrt(math.pi * nu) * np.exp(-(nu + 1) / 2 * _log_one_plus_square(ratio)))


def gamma_ratio(a: npt.ArrayLike) -> FloatArray:
    """Return Γ(a + 1/2) / Γ(a) for ``a`` > 0.

    Small arguments are moved up by Γ(a + 1) = a Γ(a); from there the difference of two of Stirling's series is exact
    where the difference of two logarithms of Γ would lose digits (DLMF 5.11.8 with B_2k(1/2), 24.4.27).
    """
    a = np.asarray(a, dtype=np.float64)
    factor = np.ones_like(a)
    for shift in range(_LARGE):
        factor = factor * ((a + shift) / (a + shift + 0.5))
    large = a + _LARGE
    series = np.zeros_like(a)
    for order, bernoulli in reversed(tuple(enumerate(_BERNOULLI, 1))):
        series = series / large**2 - (1 - 4.0**-order) * bernoulli / (order * (2 * order - 1))
    return np.asarray(factor * np.sqrt(large) * np.exp(series / large))


def log_gamma(x: npt.ArrayLike) -> FloatArray:
    """Return log Γ(x) of every element of ``x`` > 0, by the standard library."""
    x = np.asarray(x, dtype=np.float64)
    return np.array([math.lgamma(each) for each in x.ravel().tolist()]).reshape(x.shape)


def trigamma(x: float) -> float:
    """Return ψ'(x), the second derivative of log Γ, for ``x`` > 0; raises ``ValueError`` otherwise.

    The recurrence ψ'(x) = ψ'(x + 1) + 1 / x² (DLMF 5.15.5) up to where the asymptotic series (5.15.8) is exact.
    """
    if not x > 0.0:
        raise ValueError(f"trigamma of {x}: only arguments above 0 are supported")
    total = 0.0
    while x < _LARGE:
        total += 1 / x**2
        x += 1.0
    series = sum(bernoulli / x ** (2 * order) for order, bernoulli in enumerate(_BERNOULLI, 1))
    return total + (1 + 1 / (2 * x) + series) / x


def _log_one_plus_square(ratio: FloatArray) -> FloatArray:
    """Return log(1 + ratio²) without overflow and without loss where ``ratio`` is small."""
    small = np.minimum(ratio, 1.0)
    return np.asarray(np.where(ratio < 1.0, np.log1p(small**2), 2.0 * np.log(np.hypot(1.0, ratio))))


def _density_of_logarithm(t: FloatArray, nu: FloatArray) -> FloatArray:
    """Return t times the density of Student's t at t >= 0: the density of log T, which lasts as far as the tail."""
    ratio = t / np.sqrt(nu)
    power = np.exp(-nu / 2 * _log_one_plus_square(ratio))
    return np.asarray(gamma_ratio(nu / 2) / math.sqrt(math.pi) * power * (ratio / np.hypot(1.0, ratio)))


def _share_of_one_side(t: FloatArray, nu: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return P(T > t) for t >= 0 where the second array is true, elsewhere P(0 < T < t), which is 1/2 minus it.

    Near the middle the series of I_y(1/2, freedom / 2), whose terms are all positive (DLMF 8.17.8); in the tail the
    continued fraction of I_x(freedom / 2, 1/2), which converges there within some ten steps (8.17.22).
    """
    ratio = t / np.sqrt(nu)
    hypotenuse = np.hypot(1.0, ratio)
    a = np.broadcast_to(nu / 2, ratio.shape)
    outside = np.asarray(~((t < _MIDDLE) & (ratio < 1.0)))
    middle = ~outside
    share = np.array(_density_of_logarithm(t, nu))
    share[middle] *= _beta_series(a[middle], (ratio[middle] / hypotenuse[middle]) ** 2)
    share[outside] /= 2.0 * a[outside] * _beta_fraction(a[outside], hypotenuse[outside] ** -2.0)
    return share, outside


def _beta_series(b: FloatArray, y: FloatArray) -> FloatArray:
    """Return the sum of (b + 1/2)_n / (3/2)_n y^n, the hypergeometric series of DLMF 8.17.8 with a = 1/2."""
    term = np.ones_like(y)
    total = np.ones_like(y)
    for n in range(_MOST_TERMS):
        term = term * (y * ((b + (n + 0.5)) / (n + 1.5)))
        total += term
        if not np.any(term > _CONVERGED / 4 * total):
            break
    return total


def _beta_fraction(a: FloatArray, x: FloatArray) -> FloatArray:
    """Return 1 + d1 / (1 + d2 / (1 + …)) of DLMF 8.17.22 with b = 1/2, by the modified method of Lentz."""
    value, numerator, denominator = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    for n in range(1, _MOST_TERMS):
        m = n // 2
        if n % 2:
            d = -(a + m) * (a + (m + 0.5)) * x / ((a + 2 * m) * (a + (2 * m + 1)))
        else:
            d = m * (0.5 - m) * x / ((a + (2 * m - 1)) * (a + 2 * m))
        denominator = 1.0 / (1.0 + d * denominator)
        numerator = 1.0 + d / numerator
        change = numerator * denominator
        value = value * change
        if not np.any(np.abs(change - 1.0) > _CONVERGED):
            break
    return value
