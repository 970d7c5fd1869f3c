"""Fitting: measured points in, for every series the sums of terms that explain it, each with its probability.

The steps for a block of series: repeats to means (``repeats``), the factors worth combining (``screening``), sums grown
term by term (``search``), fitted exactly (``posterior``), points that no sum explains left out, and all of it again
with what the first round says about the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import posterior, repeats, screening, search, terms
from advisor_scaling.posterior import SumCandidates

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_scaling.repeats import AveragedRepeats
    from advisor_scaling.terms import FactorLibrary

    Mask = npt.NDArray[np.bool_]
    Tried = tuple[IntArray, SumCandidates]

#: How many sums are kept in the end.
SUMS_LIMIT: Final = 32
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
class FittedModels:
    """What was fitted: ``candidates`` of each series (k), whose ``compounds`` (k, c, m) index the ``libraries``.

    ``points`` (n, m) and ``averaged`` are what it was fitted to; ``left_out`` (k, n) tells the points that count as
    disturbed, ``misfit`` (k,) the share of the noise variance that repeats at one point do not show. ``drift`` (k,) is
    by how much the logarithm of a prediction is off with each doubling away from the points, zero where that was not
    asked for (``rehearsals``).
    """

    parameters: tuple[str, ...]
    points: FloatArray
    averaged: AveragedRepeats
    libraries: tuple[FactorLibrary, ...]
    compounds: IntArray
    candidates: SumCandidates
    left_out: FloatArray
    misfit: FloatArray
    drift: FloatArray


def fit_models(
    parameters: Sequence[str],
    points: FloatArray,
    values: FloatArray,
    scale: FloatArray | None = None,
    leading: Sequence[int] = (),
) -> FittedModels:
    """Return the models of all series: ``points`` (n, m) above zero, ``values`` (k, n, repeats) with NaN for none.

    ``scale`` (k, n) is what the noise is proportional to, where that is not the value itself (a gap's noise is that
    of the run). The ``leading`` series tell by which parameters work is divided; all of them where none are named.
    ValueError where a parameter is not above zero or a point has no value.
    """
    if not (points > 0.0).all():
        raise ValueError("a parameter must be above zero to stand in a power law")
    if np.isnan(values).all(axis=2).any():
        raise ValueError("a point without any value")
    averaged = repeats.average_repeats(values, scale)
    libraries = _build_libraries(parameters, points, averaged.mean[list(leading)] if leading else averaged.mean)
    block = max(1, _BLOCK // (_count_columns(libraries) * len(points)))
    parts = [
        _fit_block(libraries, points, _select_series(averaged, slice(at, at + block))) for at in range(0, len(values),
        block)
    ]  # fmt: skip
    compounds = np.concatenate([part[0] for part in parts])
    candidates = _join_candidates([part[1] for part in parts])
    left_out, misfit = (np.concatenate([part[at] for part in parts]) for at in (2, 3))
    drift = np.zeros(len(values))
    return FittedModels(tuple(parameters), points, averaged, libraries, compounds, candidates, left_out, misfit, drift)


def _build_libraries(parameters: Sequence[str], points: FloatArray, mean: FloatArray) -> tuple[FactorLibrary, ...]:
    falling = terms.find_falling(points, mean)
    return tuple(
        terms.build_library(name, points[:, axis], falling[axis]) for axis, name in enumerate(parameters)
    )  # fmt: skip


def _count_columns(libraries: Sequence[FactorLibrary]) -> int:
    many = screening.FACTORS_LIMIT.get(len(libraries), screening.FACTORS_LIMIT_OF_MANY)
    return int(np.prod([min(many, len(library.factors)) for library in libraries]))


def _select_series(averaged: AveragedRepeats, which: slice | IntArray) -> AveragedRepeats:
    return repeats.AveragedRepeats(*(getattr(averaged, name)[which] for name in repeats.AveragedRepeats.__slots__))


def _fit_block(
    libraries: Sequence[FactorLibrary], points: FloatArray, averaged: AveragedRepeats
) -> tuple[IntArray, SumCandidates, FloatArray, FloatArray]:
    """Return compounds, candidates, points left out and misfit of a block of series."""
    tables = terms.build_tables(libraries, points)
    root = 1.0 / (averaged.scale * np.sqrt(averaged.variance))
    chosen = screening.select_promising(libraries, tables, points, averaged.mean, root**2)
    found = _search_sums(libraries, tables, chosen, averaged, root)
    left_out = np.zeros(root.shape, dtype=bool)
    for _ in range(len(points) // 5 if len(points) >= FEWEST_FOR_OUTLIERS else 0):
        rest, free = _compute_residual(tables, found, averaged, left_out)
        doubtful = (_excess_ratio(rest, free, averaged) > BEYOND_DOUBT).nonzero()[0]
        found, dropped = _drop_worst_points(libraries, tables, chosen, averaged, found, rest, left_out, doubtful)
        left_out |= dropped
        if not dropped.any():
            break
    rest, free = _compute_residual(tables, found, averaged, left_out)
    misfit = _estimate_misfit(rest, free, averaged)
    again = (misfit > 0.0).nonzero()[0]
    if len(again):
        root = np.where(left_out, _NOTHING, 1.0) / (averaged.scale * np.sqrt(averaged.variance + misfit[:, None]))
        some = [each[again] for each in chosen]
        found = _replace_series(
            found, _search_sums(libraries, tables, some, _select_series(averaged, again), root[again]), again
        )
    return *found, left_out.astype(float), misfit


def _compute_residual(
    tables: Sequence[FloatArray], found: Tried, averaged: AveragedRepeats, left_out: Mask
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
    values = compute_compounds(tables, compounds[series[:, None], np.maximum(chosen, 0)])
    rest = (averaged.mean - np.einsum("kt,ktn->kn", held, values)) / averaged.scale
    return np.where(left_out, 0.0, rest), free[series, closest]


def _excess_ratio(rest: FloatArray, free: IntArray, averaged: AveragedRepeats) -> FloatArray:
    """Return by what the squares are larger than the repeats explain (k,)."""
    noise = averaged.within / averaged.dof
    return np.asarray((rest**2 / averaged.variance).sum(axis=1) / free / noise)


def _drop_worst_points(
    libraries: Sequence[FactorLibrary], tables: Sequence[FloatArray], chosen: list[IntArray], averaged: AveragedRepeats,
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
    part = _select_series(averaged, doubtful)
    other = _search_sums(libraries, tables, [each[doubtful] for each in chosen], part, root[doubtful])
    before = (rest**2).sum(axis=1)[doubtful]
    after = (_compute_residual(tables, other, part, trial[doubtful])[0] ** 2).sum(axis=1)
    better = after * MUCH_BETTER < before
    dropped[doubtful[better]] = (trial & ~left_out)[doubtful[better]]
    return _replace_series(found, _select_sums(other, better), doubtful[better]), dropped


def _select_sums(found: Tried, which: Mask) -> Tried:
    return found[0][which], SumCandidates(*(getattr(found[1], name)[which] for name in SumCandidates.__slots__))


def compute_compounds(tables: Sequence[FloatArray], compounds: IntArray) -> FloatArray:
    """Return each compound (k, c, m) at the points of the tables (factors, n): shape (k, c, n)."""
    value = tables[0][compounds[..., 0]]
    for axis in range(1, len(tables)):
        value = value * tables[axis][compounds[..., axis]]
    return value


def _search_sums(
    libraries: Sequence[FactorLibrary], tables: Sequence[FloatArray], chosen: list[IntArray], averaged: AveragedRepeats,
    root: FloatArray,
) -> tuple[IntArray, SumCandidates]:  # fmt: skip
    """Return the compounds that were tried for each series and the sums of them that explain it."""
    compounds = screening.factor_products(chosen)
    data, largest = _whiten_block(libraries, compounds, screening.product_values(tables, chosen), averaged, root)
    grid = tuple(each.shape[1] for each in chosen)
    # how many terms a sum may have: the constant, one per parameter and one more, if the points allow
    found = search.explore_sums(data, grid, max(1, min(len(libraries) + 2, data.y.shape[1] // 2)))
    found = search.merge_found([found, *search.exchange_terms(found, data)])
    worth = posterior.mask_repeated_sums(found.terms, found.worth)
    order = np.argsort(-worth, axis=1, kind="stable")[:, : 2 * SUMS_LIMIT]
    series = np.arange(len(order))[:, None]
    prior = np.where(np.isfinite(found.worth[series, order]), found.prior[series, order], -np.inf)
    wider = 1.0 + posterior.WIDER_BY_PARAMETER * (len(libraries) - 1)
    exact = posterior.fit_sums(
        found.terms[series, order], prior, data.columns, data.y, averaged.within, averaged.dof, wider
    )  # fmt: skip
    unit = _pick_columns(largest, exact.terms)
    pairs = unit[..., :, None] * unit[..., None, :]
    exact = replace(exact, coefficients=exact.coefficients / unit, covariance=exact.covariance / pairs)
    return compounds, posterior.select_best(exact, SUMS_LIMIT)


def _whiten_block(
    libraries: Sequence[FactorLibrary],
    compounds: IntArray,
    values: FloatArray,
    averaged: AveragedRepeats,
    root: FloatArray,
) -> tuple[search.WhitenedBlock, FloatArray]:
    """Return the series and compounds in units of noise, and what the columns were divided by (k, c)."""
    size = np.maximum(np.abs(averaged.mean), averaged.scale)
    largest = np.maximum((values / size[:, None, :]).max(axis=2), 1e-300)
    columns = values * (root[:, None, :] / largest[..., None])
    # the logarithm of the weight of each compound before any data, the constant's 0
    weight = sum(
        np.log(np.array(each.prior))[compounds[:, :, axis]] for axis, each in enumerate(libraries)
    )  # fmt: skip
    real = (compounds != 0).sum(axis=2)
    prior = np.asarray(weight - np.log(2.0) * np.maximum(real - 1, 0))
    data = search.WhitenedBlock(
        averaged.mean * root, columns, (columns**2).sum(axis=2), prior, averaged.within, averaged.dof
    )  # fmt: skip
    return data, largest


def _pick_columns(of_columns: FloatArray, chosen: IntArray) -> FloatArray:
    series = np.arange(len(chosen))[:, None, None]
    return np.where(chosen >= 0, of_columns[series, np.maximum(chosen, 0)], 1.0)


def _estimate_misfit(rest: FloatArray, free: IntArray, averaged: AveragedRepeats) -> FloatArray:
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
    beyond = (_excess_ratio(rest, free, averaged) > BEYOND_DOUBT) & (averaged.dof > repeats.ASSUMED_DOF)
    return np.where(beyond, high, 0.0)


def _replace_series(found: Tried, other: Tried, which: IntArray) -> Tried:
    """Return ``found`` with the series ``which`` taken from ``other``."""
    compounds = found[0].copy()
    compounds[which] = other[0]
    arrays = {name: getattr(found[1], name).copy() for name in SumCandidates.__slots__}
    for name, array in arrays.items():
        array[which] = getattr(other[1], name)
    return compounds, SumCandidates(**arrays)


def _join_candidates(parts: list[SumCandidates]) -> SumCandidates:
    return SumCandidates(*(np.concatenate([getattr(part, name) for part in parts]) for name in SumCandidates.__slots__))
