"""What the fitted sums say about other points: the value, its interval, and how the sums differ."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_density, student_t_probability
from advisor_scaling import engine, terms

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_scaling.engine import FittedModels

#: The search for a quantile ends when it moves by this share of it, or after so many steps.
_PRECISION: Final = 1e-9
_MOST_STEPS: Final = 120
#: What is below this share of the least measured value of a series that is not zero is a remainder of the fit.
_NOTHING: Final = 1e-7
#: Powers that differ by no more are hard to tell apart.
WITHIN: Final = 0.25
#: Sums whose neighbourhoods differ by that much probability are as good as each other.
EQUAL: Final = 0.02


@dataclass(frozen=True, slots=True)
class Forecast:
    """The value (k, t) of each series at t points, median of what all sums say, and the ends of its interval."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def compute_sums(fits: FittedModels, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what each sum of each series says at ``targets`` (t, m), and its standard error: (k, s, t) twice."""
    tables = terms.build_tables(fits.libraries, targets)
    design = engine.compute_compounds(tables, factors_of_sums(fits)) * (fits.candidates.terms >= 0)[..., None]
    mean = np.einsum("kst,kstn->ksn", fits.candidates.coefficients, design)
    variance = np.einsum("kstn,kstu,ksun->ksn", design, fits.candidates.covariance, design, optimize=True)
    return mean, np.sqrt(np.maximum(variance, 0.0))


def factors_of_sums(fits: FittedModels) -> IntArray:
    """Return the factors of each term of each sum, (k, s, t, m) indexes into the libraries; the constant's for none."""
    chosen = fits.candidates.terms
    series = np.arange(len(chosen))[:, None, None]
    return fits.compounds[series, np.maximum(chosen, 0)]


def compute_forecast(fits: FittedModels, targets: FloatArray, level: float = 0.8, of_run: bool = False) -> Forecast:
    """Return value and interval (``level`` of the probability, equal tails) of all series at ``targets`` (t, m).

    As ``compute_steady_forecast``; the further a target is from the measured points, the more the drift of the models
    counts beside.
    """
    return widen_by_drift(fits, targets, compute_steady_forecast(fits, targets, level, of_run), level)


def compute_steady_forecast(fits: FittedModels, targets: FloatArray, level: float, of_run: bool) -> Forecast:
    """Return the forecast of models that hold beyond the measured points as they do among them.

    ``of_run``: the interval is that of one more run, noise included, not that of the mean of many. Where points lie off
    the model by more than their noise, the next one will too. No end is negative.
    """
    mean, error = compute_sums(fits, targets)
    beyond = fits.misfit[:, None] + (1.0 if of_run else 0.0)
    error = np.sqrt(error**2 + beyond[..., None] * (fits.candidates.sigma[..., None] * mean) ** 2)
    shares, degrees = fits.candidates.probability, fits.candidates.degrees
    middle, lower, upper = (
        compute_quantile(mean, error, shares, degrees, 0.5 + at * level / 2) for at in (0.0, -1.0, 1.0)
    )
    ends = (middle, np.minimum(lower, middle), np.maximum(upper, middle))  # quantiles may be off in their last digits
    size = np.abs(fits.averaged.mean)
    least = _NOTHING * np.where(size > 0.0, size, np.inf).min(axis=1)[:, None]
    value, low, high = (np.where(end > np.where(np.isfinite(least), least, 0.0), end, 0.0) for end in ends)
    return Forecast(value, low, high)


def measure_ways(points: FloatArray, targets: FloatArray) -> FloatArray:
    """Return how many doublings each target (t, m) is from the nearest of ``points`` (n, m), over all parameters."""
    return np.asarray(np.abs(np.log2(targets)[:, None, :] - np.log2(points)[None, :, :]).sum(axis=2).min(axis=1))


def widen_by_drift(fits: FittedModels, targets: FloatArray, said: Forecast, level: float) -> Forecast:
    """Return the forecast with the drift of the models added to its interval, on logarithms."""
    reach = NormalDist().inv_cdf(0.5 + level / 2) * fits.drift[:, None] * measure_ways(fits.points, targets)
    value = np.maximum(said.value, 1e-300)
    down = np.hypot(np.log(value) - np.log(np.maximum(said.low, 1e-300)), reach)
    up = np.hypot(np.log(np.maximum(said.high, value)) - np.log(value), reach)
    low = np.where(said.low > 0.0, value * np.exp(-down), 0.0)
    return Forecast(said.value, low, np.where(said.value > 0.0, value * np.exp(up), said.high))


def compute_quantile(
    mean: FloatArray, error: FloatArray, shares: FloatArray, degrees: FloatArray, at: float
) -> FloatArray:  # fmt: skip
    """Return the quantile (k, t) of the mixture of Student distributions (k, s, t)."""
    error = np.maximum(error, 1e-12 * np.abs(mean) + 1e-300)
    series, _, points = mean.shape
    flat_mean, flat_error = (array.swapaxes(1, 2).reshape(series * points, -1) for array in (mean, error))
    weight, degrees = (np.repeat(array, points, axis=0) for array in (shares, degrees))
    return _mixture_quantile(flat_mean, flat_error, weight, degrees, at).reshape(series, points)


def _mixture_quantile(
    mean: FloatArray, error: FloatArray, weight: FloatArray, degrees: FloatArray, at: float
) -> FloatArray:  # fmt: skip
    """Return the quantile (n,) of each row of a table of weighted Student distributions (n, s).

    Newton's method; where it would leave what encloses the quantile, or no longer halves its step, that is bisected.
    Rows that are settled take no more time.
    """
    reach = np.where(weight > 0.0, 40.0 * error, 0.0)
    center = np.where(weight > 0.0, mean, np.nan)
    low, high = np.nanmin(center - reach, axis=1), np.nanmax(center + reach, axis=1)
    value, step = np.clip((weight * mean).sum(axis=1), low, high), high - low
    rounding = 2e-16 * step
    open_rows = np.arange(len(mean))
    for _ in range(_MOST_STEPS):
        now, part = value[open_rows], weight[open_rows]
        off = (now[:, None] - mean[open_rows]) / error[open_rows]
        missing = at - (part * student_t_probability(off, degrees[open_rows])).sum(axis=1)
        density = (part * student_t_density(off, degrees[open_rows]) / error[open_rows]).sum(axis=1)
        below = low[open_rows] = np.where(missing > 0.0, now, low[open_rows])
        above = high[open_rows] = np.where(missing > 0.0, high[open_rows], now)
        following = now + missing / np.maximum(density, 1e-300)
        safe = (below <= following) & (following <= above) & (np.abs(following - now) <= 0.5 * step[open_rows])
        following = np.where(safe, following, 0.5 * (below + above))
        value[open_rows] = following
        step[open_rows] = np.abs(following - now)
        open_rows = open_rows[step[open_rows] > _PRECISION * np.abs(following) + rounding[open_rows]]
        if not open_rows.size:
            break
    return np.asarray(value)


def leading_powers(fits: FittedModels) -> FloatArray:
    """Return the highest power of each parameter in each sum: (k, s, m), zero where it does not occur."""
    factors = factors_of_sums(fits)
    each_power = np.stack([each.powers[factors[..., axis]] for axis, each in enumerate(fits.libraries)], axis=-1)
    constant = (factors == 0).all(axis=-1) | (fits.candidates.terms < 0)
    some = np.where(constant[..., None], -np.inf, each_power).max(axis=2)
    return np.where(np.isfinite(some), some, 0.0)


def central_powers(fits: FittedModels) -> FloatArray:
    """Return the highest power of each parameter (k, m): the one within 1/4 of which the most probability lies.

    Between two powers that are both probable lies one that is within 1/4 of either, although no sum with it may be.
    """
    return np.asarray(leading_powers(fits)[np.arange(len(fits.compounds)), _most_central_sums(fits, 0.0)])


def representative_sums(fits: FittedModels) -> IntArray:
    """Return the representative sum (k,): the most central of those at least a tenth as probable as the best."""
    return _most_central_sums(fits, 0.1)


def _most_central_sums(fits: FittedModels, least: float) -> IntArray:
    """Return the sum (k,) with the most probability in its neighbourhood, to ``EQUAL``; the most probable of those.

    Neighbours are sums whose highest powers differ by at most ``WITHIN`` in each parameter; sums less probable than
    ``least`` times the best are not considered.
    """
    leading = leading_powers(fits)
    near = (np.abs(leading[:, :, None, :] - leading[:, None, :, :]) <= WITHIN + 1e-9).all(axis=-1)
    shares = fits.candidates.probability
    mass = (near * shares[:, None, :]).sum(axis=2)
    mass = np.where(shares >= least * shares.max(axis=1, keepdims=True), mass, -1.0)
    central = mass >= mass.max(axis=1, keepdims=True) - EQUAL
    return np.asarray(np.where(central, shares, -1.0).argmax(axis=1))
