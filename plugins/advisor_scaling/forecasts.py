"""What the fitted sums say about other points: the value, its interval, and how the sums differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import engine, terms

if TYPE_CHECKING:
    from advisor.model import FloatArray, IntArray
    from advisor_scaling.engine import Fits

_HALVINGS: Final = 32
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


def sums_at(fits: Fits, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what each sum of each series says at ``targets`` (t, m), and its standard error: (k, s, t) twice."""
    tables = terms.tables(fits.libraries, targets)
    design = engine.values_of(tables, picked(fits)) * (fits.candidates.terms >= 0)[..., None]
    mean = np.einsum("kst,kstn->ksn", fits.candidates.coefficients, design)
    variance = np.einsum("kstn,kstu,ksun->ksn", design, fits.candidates.covariance, design, optimize=True)
    return mean, np.sqrt(np.maximum(variance, 0.0))


def picked(fits: Fits) -> IntArray:
    """Return the factors of each term of each sum, (k, s, t, m) indexes into the libraries; the constant's for none."""
    chosen = fits.candidates.terms
    series = np.arange(len(chosen))[:, None, None]
    return fits.compounds[series, np.maximum(chosen, 0)]


def forecast(fits: Fits, targets: FloatArray, level: float = 0.8, of_run: bool = False) -> Forecast:
    """Return value and interval (``level`` of the probability, equal tails) of all series at ``targets`` (t, m).

    ``of_run``: the interval is that of one more run, noise included, not that of the mean of many. Where points lie off
    the model by more than their noise, the next one will too. No end is negative.
    """
    mean, error = sums_at(fits, targets)
    beyond = fits.misfit[:, None] + (1.0 if of_run else 0.0)
    error = np.sqrt(error**2 + beyond[..., None] * (fits.candidates.sigma[..., None] * mean) ** 2)
    shares, degrees = fits.candidates.probability, fits.candidates.degrees
    ends = [quantile(mean, error, shares, degrees, at) for at in (0.5, 0.5 - level / 2, 0.5 + level / 2)]
    size = np.abs(fits.averaged.mean)
    least = _NOTHING * np.where(size > 0.0, size, np.inf).min(axis=1)[:, None]
    value, low, high = (np.where(end > np.where(np.isfinite(least), least, 0.0), end, 0.0) for end in ends)
    return Forecast(value, low, high)


def quantile(
    mean: FloatArray, error: FloatArray, shares: FloatArray, degrees: FloatArray, at: float
) -> FloatArray:  # fmt: skip
    """Return the quantile (k, t) of the mixture of Student distributions (k, s, t) by bisection."""
    from scipy.special import stdtr

    error = np.maximum(error, 1e-12 * np.abs(mean) + 1e-300)
    reach = np.where(shares[..., None] > 0.0, 40.0 * error, 0.0)
    told = np.where(shares[..., None] > 0.0, mean, np.nan)
    low = np.nanmin(told - reach, axis=1)
    high = np.nanmax(told + reach, axis=1)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = (shares[..., None] * stdtr(degrees[..., None], (middle[:, None, :] - mean) / error)).sum(axis=1)
        low, high = np.where(below < at, middle, low), np.where(below < at, high, middle)
    return np.asarray(0.5 * (low + high))


def leads(fits: Fits) -> FloatArray:
    """Return the highest power of each parameter in each sum: (k, s, m), zero where it does not occur."""
    factors = picked(fits)
    each_power = np.stack([each.powers[factors[..., axis]] for axis, each in enumerate(fits.libraries)], axis=-1)
    constant = (factors == 0).all(axis=-1) | (fits.candidates.terms < 0)
    some = np.where(constant[..., None], -np.inf, each_power).max(axis=2)
    return np.where(np.isfinite(some), some, 0.0)


def powers(fits: Fits) -> FloatArray:
    """Return the highest power of each parameter (k, m): the one within 1/4 of which the most probability lies.

    Between two powers that are both probable lies one that is within 1/4 of either, although no sum with it may be.
    """
    return np.asarray(leads(fits)[np.arange(len(fits.compounds)), _most_central(fits, 0.0)])


def representative(fits: Fits) -> IntArray:
    """Return the sum (k,) that stands for all: of those at least a tenth as probable as the best, the most central."""
    return _most_central(fits, 0.1)


def _most_central(fits: Fits, least: float) -> IntArray:
    """Return the sum (k,) with the most probability in its neighbourhood, to ``EQUAL``; the most probable of those.

    Neighbours are sums whose highest powers differ by at most ``WITHIN`` in each parameter; sums less probable than
    ``least`` times the best are not considered.
    """
    leading = leads(fits)
    near = (np.abs(leading[:, :, None, :] - leading[:, None, :, :]) <= WITHIN + 1e-9).all(axis=-1)
    shares = fits.candidates.probability
    mass = (near * shares[:, None, :]).sum(axis=2)
    mass = np.where(shares >= least * shares.max(axis=1, keepdims=True), mass, -1.0)
    central = mass >= mass.max(axis=1, keepdims=True) - EQUAL
    return np.asarray(np.where(central, shares, -1.0).argmax(axis=1))
