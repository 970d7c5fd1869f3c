"""Repeated runs: one value per point with its uncertainty, without the runs that something disturbed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import trigamma

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray

#: A repeat this many robust standard deviations off the median of its point does not count.
OUTLIER: Final = 5.0
#: How many repeats the spread of all points counts for, against a point's own: between these.
LEAST_REPEATS: Final = 1.0
MOST_REPEATS: Final = 20.0
#: Relative spread that is assumed where nothing was repeated, and how many degrees of freedom that is worth.
ASSUMED_SPREAD: Final = 0.02
ASSUMED_DOF: Final = 1.0
_MAD: Final = 1.4826
#: Spreads of fewer points do not tell whether points differ in their noise.
_FEWEST_SPREADS: Final = 3


@dataclass(frozen=True, slots=True)
class AveragedRepeats:
    """Series over points: ``mean`` (k, n), its ``variance`` (k, n) in units of the noise, and the noise seen.

    The standard deviation of a mean is ``sigma * scale * sqrt(variance)``; ``scale`` (k, n) is the size of the value
    that the noise is relative to. ``within`` (k,) is the sum of squares within the points, ``dof`` (k,) its degrees of
    freedom; ``dropped`` (k,) counts repeats that were left out.
    """

    mean: FloatArray
    variance: FloatArray
    scale: FloatArray
    within: FloatArray
    dof: FloatArray
    dropped: FloatArray


def average_repeats(values: FloatArray, scale: FloatArray | None = None) -> AveragedRepeats:
    """Return the mean of each point of ``values`` (k, n, repeats), NaN where there are fewer repeats.

    ``scale`` (k, n): what the noise is relative to, where that is not the value itself.
    """
    center = np.nanmedian(values, axis=2)
    size = _positive_sizes(center if scale is None else scale)
    deviation = (values - center[..., None]) / size[..., None]
    keep = ~np.isnan(values) & ~_find_outliers(deviation)
    count = keep.sum(axis=2).astype(float)
    mean = np.where(keep, values, 0.0).sum(axis=2) / count
    size = _positive_sizes(mean) if scale is None else size
    squares = (np.where(keep, (values - mean[..., None]) / size[..., None], 0.0) ** 2).sum(axis=2)
    free = count - 1.0
    dof = free.sum(axis=1)
    spread = np.maximum(squares.sum(axis=1) / np.maximum(dof, 1.0), 1e-12)
    worth = _pooling_weight(squares, free)[:, None]
    own = np.maximum((worth * spread[:, None] + squares) / (worth + free) / spread[:, None], 1e-3)
    assumed = ASSUMED_DOF * ASSUMED_SPREAD**2
    within = (squares / own).sum(axis=1) + assumed
    dropped = (~np.isnan(values)).sum(axis=(1, 2)) - count.sum(axis=1)
    return AveragedRepeats(mean, own / count, size, within, dof + ASSUMED_DOF, dropped)


def _pooling_weight(squares: FloatArray, free: FloatArray) -> FloatArray:
    """Return how many repeats the spread of all points is worth against a point's own (k,).

    Few where the spreads of the points differ more than chance explains, by the moments of the logarithms of their
    variances (G. Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004, section 6.2).
    """
    told = (free > 0.0) & (squares > 0.0)
    weight = np.full(len(squares), MOST_REPEATS)
    enough = told.sum(axis=1) >= _FEWEST_SPREADS
    if enough.any():
        known, many = told[enough], np.where(told, free, np.nan)[enough]
        variance = np.where(known, squares[enough] / np.maximum(free[enough], 1.0), np.nan)
        explained = [trigamma(each / 2) for each in np.nanmean(many, axis=1).tolist()]
        beyond = np.nanvar(np.log(variance), axis=1, ddof=1) - np.array(explained)
        weight[enough] = np.clip(2.0 / np.maximum(beyond, 1e-9) + 1.0, LEAST_REPEATS, MOST_REPEATS)
    return weight


def _find_outliers(deviation: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which repeats lie far off the median of their point; with fewer than three, none.

    Far is measured by the usual deviation of all points, and by that of the point where it is larger.
    """
    enough = (~np.isnan(deviation)).sum(axis=2) >= 3
    size = np.abs(deviation)
    usual = np.where(enough[..., None], size, np.nan).reshape(len(deviation), -1)
    limit = np.full(deviation.shape[:2], np.inf)
    told = ~np.isnan(usual).all(axis=1)
    if told.any():
        limit[told] = np.nanmedian(usual[told], axis=1)[:, None]
        limit[enough] = np.maximum(limit[enough], np.nanmedian(size[enough], axis=1))
    return np.asarray(enough[..., None] & (size > np.maximum(OUTLIER * _MAD * 1.2 * limit, 1e-9)[..., None]))


def _positive_sizes(size: FloatArray) -> FloatArray:
    """Return sizes that something can be relative to: never below a millionth of the largest of the series."""
    largest = np.abs(size).max(axis=1, keepdims=True)
    return np.asarray(np.maximum(np.abs(size), np.maximum(1e-6 * largest, 1e-300)))
