"""Fitting: measured points in, for every series the sums of terms that explain it, each with its probability.

The steps for a block of series: repeats to means (``repeats``), the factors worth combining (``screening``), sums grown
term by term (``search``), fitted exactly (``posterior``), points that no sum explains left out, and all of it again
with what the first round says about the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import posterior, repeats, screening, search, terms
from advisor_scaling.posterior import Candidates

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_scaling.repeats import Averaged
    from advisor_scaling.terms import Library

    Mask = npt.NDArray[np.bool_]
    Tried = tuple[IntArray, Candidates]

#: How many sums are kept in the end.
KEPT: Final = 32
#: A point is left out where the squares of all others then become that many times smaller, one in five at most.
MUCH_BETTER: Final = 10.0
FEWEST_FOR_OUTLIERS: Final = 6
#: Points spread more than their repeats explain where their squares are that many times too large.
BEYOND_DOUBT: Final = 4.0
#: The weight of a point that is left out.
_NOTHING: Final = 1e-9
_HALVINGS: Final = 40
#: Numbers that one block of series may take (in eight bytes each).
_BLOCK: Final = 600_000


@dataclass(frozen=True, slots=True)
class Fits:
    """What was fitted: ``candidates`` of each series (k), whose ``compounds`` (k, c, m) index the ``libraries``.

    ``points`` (n, m) and ``averaged`` are what it was fitted to; ``left_out`` (k, n) tells the points that count as
    disturbed, ``misfit`` (k,) the share of the noise variance that repeats at one point do not show.
    """

    parameters: tuple[str, ...]
    points: FloatArray
    averaged: Averaged
    libraries: tuple[Library, ...]
    compounds: IntArray
    candidates: Candidates
    left_out: FloatArray
    misfit: FloatArray


def fit(
    parameters: Sequence[str], points: FloatArray, values: FloatArray, scale: FloatArray | None = None
) -> Fits:  # fmt: skip
    """Return the models of all series: ``points`` (n, m) above zero, ``values`` (k, n, repeats) with NaN for none.

    ``scale`` (k, n) is what the noise is proportional to, where that is not the value itself (a gap's noise is that
    of the run). ValueError where a parameter is not above zero or a point has no value.
    """
    if not (points > 0.0).all():
        raise ValueError("a parameter must be above zero to stand in a power law")
    if np.isnan(values).all(axis=2).any():
        raise ValueError("a point without any value")
    averaged = repeats.average(values, scale)
    libraries = _libraries(parameters, points, averaged.mean)
    block = max(1, _BLOCK // (_columns(libraries) * len(points)))
    parts = [
        _block(libraries, points, _part(averaged, slice(at, at + block))) for at in range(0, len(values), block)
    ]  # fmt: skip
    compounds = np.concatenate([part[0] for part in parts])
    candidates = _joined([part[1] for part in parts])
    left_out, misfit = (np.concatenate([part[at] for part in parts]) for at in (2, 3))
    return Fits(tuple(parameters), points, averaged, libraries, compounds, candidates, left_out, misfit)


def _libraries(parameters: Sequence[str], points: FloatArray, mean: FloatArray) -> tuple[Library, ...]:
    falling = terms.falls(points, mean)
    return tuple(
        terms.library(name, points[:, axis], falling[axis]) for axis, name in enumerate(parameters)
    )  # fmt: skip


def _columns(libraries: Sequence[Library]) -> int:
    many = screening.KEPT.get(len(libraries), screening.KEPT_OF_MANY)
    return int(np.prod([min(many, len(each.factors)) for each in libraries]))


def _part(averaged: Averaged, which: slice | IntArray) -> Averaged:
    return repeats.Averaged(*(getattr(averaged, name)[which] for name in repeats.Averaged.__slots__))


def _block(
    libraries: Sequence[Library], points: FloatArray, averaged: Averaged
) -> tuple[IntArray, Candidates, FloatArray, FloatArray]:
    """Return compounds, candidates, points left out and misfit of a block of series."""
    tables = terms.tables(libraries, points)
    root = 1.0 / (averaged.scale * np.sqrt(averaged.variance))
    chosen = screening.promising(libraries, tables, points, averaged.mean, root**2)
    found = _searched(libraries, tables, chosen, averaged, root)
    left_out = np.zeros(root.shape, dtype=bool)
    for _ in range(len(points) // 5 if len(points) >= FEWEST_FOR_OUTLIERS else 0):
        rest, free = _rest(tables, found, averaged, left_out)
        doubtful = (_ratio(rest, free, averaged) > BEYOND_DOUBT).nonzero()[0]
        found, dropped = _without_worst(libraries, tables, chosen, averaged, found, rest, left_out, doubtful)
        left_out |= dropped
        if not dropped.any():
            break
    rest, free = _rest(tables, found, averaged, left_out)
    misfit = _misfit(rest, free, averaged)
    again = (misfit > 0.0).nonzero()[0]
    if len(again):
        root = np.where(left_out, _NOTHING, 1.0) / (averaged.scale * np.sqrt(averaged.variance + misfit[:, None]))
        some = [each[again] for each in chosen]
        found = _replaced(found, _searched(libraries, tables, some, _part(averaged, again), root[again]), again)
    return *found, left_out.astype(float), misfit


def _rest(
    tables: Sequence[FloatArray], found: Tried, averaged: Averaged, left_out: Mask
) -> tuple[FloatArray, IntArray]:  # fmt: skip
    """Return what the closest sum of each series leaves at the points (k, n), relative to the scale, and what is free.

    The closest has the smallest squares for its number of terms; of points that were left out nothing is left.
    """
    compounds, candidates = found
    free = np.maximum((~left_out).sum(axis=1)[:, None] - (candidates.terms >= 0).sum(axis=2), 1)
    closest = np.where(candidates.probability > 0.0, candidates.squares / free, np.inf).argmin(axis=1)
    series = np.arange(len(closest))
    chosen = candidates.terms[series, closest]
    held = np.where(chosen >= 0, candidates.coefficients[series, closest], 0.0)
    values = values_of(tables, compounds[series[:, None], np.maximum(chosen, 0)])
    rest = (averaged.mean - np.einsum("kt,ktn->kn", held, values)) / averaged.scale
    return np.where(left_out, 0.0, rest), free[series, closest]


def _ratio(rest: FloatArray, free: IntArray, averaged: Averaged) -> FloatArray:
    """Return by what the squares are larger than the repeats explain (k,)."""
    noise = averaged.within / averaged.dof
    return np.asarray((rest**2 / averaged.variance).sum(axis=1) / free / noise)


def _without_worst(
    libraries: Sequence[Library], tables: Sequence[FloatArray], chosen: list[IntArray], averaged: Averaged,
    found: Tried, rest: FloatArray, left_out: Mask, doubtful: IntArray,
) -> tuple[Tried, Mask]:  # fmt: skip
    """Return what is found without the worst point of each doubtful series, and which points are better left out.

    That is so where the others then fit much better, so that it is the point that is odd and not the model.
    """
    dropped = np.zeros(left_out.shape, dtype=bool)
    if not len(doubtful):
        return found, dropped
    trial = left_out.copy()
    trial[doubtful, (np.abs(rest) / np.sqrt(averaged.variance))[doubtful].argmax(axis=1)] = True
    root = np.where(trial, _NOTHING, 1.0) / (averaged.scale * np.sqrt(averaged.variance))
    part = _part(averaged, doubtful)
    other = _searched(libraries, tables, [each[doubtful] for each in chosen], part, root[doubtful])
    before = (rest**2).sum(axis=1)[doubtful]
    after = (_rest(tables, other, part, trial[doubtful])[0] ** 2).sum(axis=1)
    better = after * MUCH_BETTER < before
    dropped[doubtful[better]] = (trial & ~left_out)[doubtful[better]]
    return _replaced(found, _chosen(other, better), doubtful[better]), dropped


def _chosen(found: Tried, which: Mask) -> Tried:
    return found[0][which], Candidates(*(getattr(found[1], name)[which] for name in Candidates.__slots__))


def values_of(tables: Sequence[FloatArray], compounds: IntArray) -> FloatArray:
    """Return each compound (k, c, m) at the points of the tables (factors, n): shape (k, c, n)."""
    value = tables[0][compounds[..., 0]]
    for axis in range(1, len(tables)):
        value = value * tables[axis][compounds[..., axis]]
    return value


def _searched(
    libraries: Sequence[Library], tables: Sequence[FloatArray], chosen: list[IntArray], averaged: Averaged,
    root: FloatArray,
) -> tuple[IntArray, Candidates]:  # fmt: skip
    """Return the compounds that were tried for each series and the sums of them that explain it."""
    compounds = screening.products(chosen)
    data, largest = _whitened(libraries, compounds, screening.products_of(tables, chosen), averaged, root)
    grid = tuple(each.shape[1] for each in chosen)
    found = search.explore(data, grid, _most_terms(len(libraries), data.y.shape[1]))
    found = search.together([found, *search.exchanged(found, data)])
    order = np.argsort(-posterior.unique(found.terms, found.worth), axis=1, kind="stable")[:, : 2 * KEPT]
    series = np.arange(len(order))[:, None]
    prior = np.where(np.isfinite(found.worth[series, order]), found.prior[series, order], -np.inf)
    wider = 1.0 + posterior.WIDER_BY_PARAMETER * (len(libraries) - 1)
    exact = posterior.fitted(
        found.terms[series, order], prior, data.columns, data.y, averaged.within, averaged.dof, wider
    )  # fmt: skip
    unit = _picked(largest, exact.terms)
    pairs = unit[..., :, None] * unit[..., None, :]
    exact = replace(exact, coefficients=exact.coefficients / unit, covariance=exact.covariance / pairs)
    return compounds, posterior.best(exact, KEPT)


def _whitened(
    libraries: Sequence[Library], compounds: IntArray, values: FloatArray, averaged: Averaged, root: FloatArray
) -> tuple[search.Whitened, FloatArray]:
    """Return the series and compounds in units of noise, and what the columns were divided by (k, c)."""
    size = np.maximum(np.abs(averaged.mean), averaged.scale)
    largest = np.maximum((values / size[:, None, :]).max(axis=2), 1e-300)
    columns = values * (root[:, None, :] / largest[..., None])
    prior = _prior(libraries, compounds)
    data = search.Whitened(
        averaged.mean * root, columns, (columns**2).sum(axis=2), prior, averaged.within, averaged.dof
    )  # fmt: skip
    return data, largest


def _prior(libraries: Sequence[Library], compounds: IntArray) -> FloatArray:
    """Return the logarithm of the weight of each compound before any data, the constant's 0."""
    weight = sum(
        np.log(np.array(each.prior))[compounds[:, :, axis]] for axis, each in enumerate(libraries)
    )  # fmt: skip
    real = (compounds != 0).sum(axis=2)
    return np.asarray(weight - np.log(2.0) * np.maximum(real - 1, 0))


def _most_terms(parameters: int, points: int) -> int:
    """Return how many terms a sum may have: the constant, one per parameter and one more, if the points allow."""
    return max(1, min(parameters + 2, points // 2))


def _picked(of_columns: FloatArray, chosen: IntArray) -> FloatArray:
    series = np.arange(len(chosen))[:, None, None]
    return np.where(chosen >= 0, of_columns[series, np.maximum(chosen, 0)], 1.0)


def _misfit(rest: FloatArray, free: IntArray, averaged: Averaged) -> FloatArray:
    """Return the variance that points have beyond what their repeats show, in units of the noise (k,).

    Programs do not scale as smoothly as equations. It is the addition that makes the squares of ``rest`` what they
    should be (R. Paule and J. Mandel, J. Res. NBS 87, 1982); zero unless beyond doubt.
    """
    noise = averaged.within / averaged.dof
    squares = rest**2 / noise[:, None]
    low, high = np.zeros(len(rest)), squares.sum(axis=1)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        more = (squares / (averaged.variance + middle[:, None])).sum(axis=1) > free
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    beyond = (_ratio(rest, free, averaged) > BEYOND_DOUBT) & (averaged.dof > repeats.ASSUMED_DOF)
    return np.where(beyond, high, 0.0)


def _replaced(found: Tried, other: Tried, which: IntArray) -> Tried:
    """Return ``found`` with the series ``which`` taken from ``other``."""
    compounds = found[0].copy()
    compounds[which] = other[0]
    arrays = {name: getattr(found[1], name).copy() for name in Candidates.__slots__}
    for name, array in arrays.items():
        array[which] = getattr(other[1], name)
    return compounds, Candidates(**arrays)


def _joined(parts: list[Candidates]) -> Candidates:
    return Candidates(*(np.concatenate([getattr(part, name) for part in parts]) for name in Candidates.__slots__))
