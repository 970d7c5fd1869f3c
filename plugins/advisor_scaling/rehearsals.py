"""How far the predictions of a study drift off: its outermost points are hidden, predicted by the others, and compared.

What a sum of terms says beyond the measured points is only as doubtful as its coefficients where the truth is such a
sum. Programs change on the way: a message outgrows a buffer, a working set leaves a cache, a second switch is passed.
Nothing that was measured shows what comes, but a study shows how well its own large points would have been predicted by
the small ones. What is left there beyond the interval counts with each doubling (a discrepancy between model and truth
as of M. Kennedy and A. O'Hagan, J. R. Stat. Soc. B 63, 2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import engine, forecasts

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray
    from advisor_scaling.engine import FittedModels
    from advisor_scaling.forecasts import Forecast

#: What is known of the drift before any rehearsal: so much of the logarithm in each doubling, and as good as so many of
#: the predictions that are compared. Chosen on development studies, as the tests and docs/validation.md say.
USUAL_DRIFT: Final = 0.02
WORTH: Final = 1
#: A rehearsal hides so many of the largest values of a parameter at most, and leaves so many at least.
MOST_HIDDEN: Final = 2
FEWEST_LEFT: Final = 3
_LEVEL: Final = 0.8
_HALVINGS: Final = 50


def fit_rehearsed_models(
    parameters: Sequence[str],
    points: FloatArray,
    values: FloatArray,
    scale: FloatArray | None = None,
    leading: Sequence[int] = (),
) -> FittedModels:
    """Return the models of ``engine.fit_models``, which raises the same, with the drift that rehearsals show."""
    fits = engine.fit_models(parameters, points, values, scale, leading)
    compared = []
    for kept in _iterate_rehearsals(points):
        some = None if scale is None else scale[:, kept]
        part = engine.fit_models(parameters, points[kept], values[:, kept], some, leading)
        said = forecasts.compute_forecast(part, points[~kept], _LEVEL)
        ways = np.broadcast_to(forecasts.measure_ways(part.points, points[~kept]), said.value.shape)
        compared.append((*_compare(said, fits.averaged.mean[:, ~kept]), ways))
    none = np.zeros((3, len(values), 0))
    errors, spreads, ways = (np.concatenate(each, axis=1) for each in zip(none, *compared, strict=True))
    return replace(fits, drift=estimate_drift(errors, spreads, ways))


def _iterate_rehearsals(points: FloatArray) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield which points (n,) are kept: those below the largest value of a parameter, then below the two largest."""
    for axis in range(points.shape[1]):
        known = np.unique(points[:, axis])
        for hidden in range(1, min(MOST_HIDDEN, len(known) - FEWEST_LEFT) + 1):
            yield points[:, axis] < known[-hidden]


def _compare(said: Forecast, measured: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return errors of a forecast and the standard deviations it states, both of logarithms (k, t).

    NaN where value or measurement is zero: that has no logarithm.
    """
    told = (said.value > 0.0) & (measured > 0.0)
    value, actual, low, high = (
        np.log(np.where(told, np.maximum(each, 1e-300), 1.0)) for each in (said.value, measured, said.low, said.high)
    )
    spread = np.where(actual > value, high - value, value - low) / NormalDist().inv_cdf(0.5 + _LEVEL / 2)
    return np.where(told, actual - value, np.nan), spread


def estimate_drift(errors: FloatArray, spreads: FloatArray, ways: FloatArray) -> FloatArray:
    """Return the drift in each doubling (k,) that explains ``errors`` (k, e) of predictions ``ways`` doublings far.

    It is the addition to their ``spreads`` that makes the squares as large as they should be (R. Paule and J. Mandel,
    J. Res. NBS 87, 1982), ``USUAL_DRIFT`` counting as ``WORTH`` predictions; just that where none are known.
    """
    told = ~np.isnan(errors)
    squares = np.where(told, errors, 0.0) ** 2
    count = told.sum(axis=1) + WORTH
    low, high = np.full(len(errors), -20.0), np.full(len(errors), 4.0)  # logarithms of the variance
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        variance = np.exp(middle)
        whole = np.maximum(spreads**2 + variance[:, None] * ways**2, 1e-30)
        more = (squares / whole).sum(axis=1) + WORTH * USUAL_DRIFT**2 / variance > count
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.asarray(np.exp(0.5 * high))
