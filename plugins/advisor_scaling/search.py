"""Which sums of terms may explain a series: growing them term by term, for all series of a block at once.

Each step adds one term to the best sums so far; afterwards each term of the best sum is exchanged for every other one.
What a sum is worth is its evidence: the probability of the values with coefficients (0 to 1, as shares of the value
where the term weighs most) and noise integrated out; that is a Bayesian information criterion without its large-sample
approximation (D. MacKay, Neural Computation 4, 1992).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import log_gamma

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

    Mask = npt.NDArray[np.bool_]

#: What a further term must be better by: the odds against it before any data.
ODDS_OF_A_TERM: Final = 0.1
#: The odds that the part which depends on nothing is zero.
ODDS_OF_NO_CONSTANT: Final = 0.3
#: How many sums are grown in each step, and how many of those that come out of it are remembered.
GROWN: Final = 8
GROWN_OF_MANY: Final = 5
REMEMBERED: Final = 40
_MANY: Final = 300
_COLLINEAR: Final = 1e-9


@dataclass(frozen=True, slots=True)
class WhitenedBlock:
    """A block of series (k) at points (n) in units of their noise: ``y`` (k, n), the terms that may be added.

    ``columns`` (k, c, n): each term, scaled so that its coefficient is its share of the value where that is largest;
    the first is the constant. ``norms`` (k, c) are their squares, ``prior`` (k, c) the logarithms of their weights.
    ``within`` (k,) and ``dof`` (k,) are what the repeats say about the noise.
    """

    y: FloatArray
    columns: FloatArray
    norms: FloatArray
    prior: FloatArray
    within: FloatArray
    dof: FloatArray


@dataclass(frozen=True, slots=True)
class GrowingSums:
    """Sums of t terms that can be grown: the best (s) of each series (k).

    ``terms`` (k, s, t) indexes the columns, ``inverse`` (k, s, t, t) is the inverse of their products, ``residual``
    (k, s, n) what they leave, ``squares`` (k, s) its sum of squares, ``logdet`` (k, s), ``prior`` (k, s).
    """

    terms: IntArray
    inverse: FloatArray
    coefficients: FloatArray
    residual: FloatArray
    squares: FloatArray
    logdet: FloatArray
    prior: FloatArray


@dataclass(frozen=True, slots=True)
class FoundSums:
    """Sums that may explain the series: ``terms`` (k, s, t; -1: none), logarithms of ``worth`` and ``prior`` (k, s)."""

    terms: IntArray
    worth: FloatArray
    prior: FloatArray


def explore_sums(data: WhitenedBlock, shape: tuple[int, ...], most: int) -> FoundSums:
    """Return the sums of up to ``most`` terms that the search came by, some of them twice.

    The columns are a grid of ``shape``, one axis per parameter.
    """
    found = find_single_terms(data)
    steps = [found]
    grown = GROWN if data.columns.shape[1] < _MANY else GROWN_OF_MANY
    bases = select_diverse(found.worth, shape)
    sums = fit_terms(bases[..., None], np.take_along_axis(found.prior, bases, axis=1), data)
    for _ in range(1, most):
        sums, found = extend_sums(sums, data, grown)
        steps.append(found)
    return merge_found(steps)


def find_single_terms(data: WhitenedBlock) -> FoundSums:
    """Return the sums of one term, all of them in the order of the columns."""
    k, c, n = data.columns.shape
    cross = np.matmul(data.columns, data.y[..., None])[..., 0]
    norms = np.maximum(data.norms, 1e-300)
    squares = np.maximum((data.y**2).sum(axis=1, keepdims=True) - cross**2 / norms, 0.0)
    prior = _added_prior(np.zeros((k, 1, 0), dtype=np.int64), data.prior)[:, 0]
    worth = log_evidence(squares, np.log(norms), data.within[:, None], data.dof[:, None], n - 1) + prior
    terms = np.tile(np.arange(c)[None, :, None], (k, 1, 1))
    return FoundSums(terms, np.where((cross > 0.0) & (data.norms > 0.0), worth, -np.inf), prior)


def select_diverse(worth: FloatArray, shape: tuple[int, ...]) -> IntArray:
    """Return the columns (k, b) to build on: the constant, and for each factor of each parameter the best with it.

    What a sum begins with may be poor by itself: work divided by P explains nothing without what P costs.
    """
    grid = worth.reshape(len(worth), *shape)
    places = np.arange(worth.shape[1]).reshape(shape)
    chosen = [np.zeros((len(worth), 1), dtype=np.int64)]
    for axis in range(len(shape)):
        flat = np.moveaxis(grid, axis + 1, 1).reshape(len(worth), shape[axis], -1)
        place = np.moveaxis(places, axis, 0).reshape(shape[axis], -1)
        chosen.append(place[np.arange(shape[axis])[None, :], flat.argmax(axis=2)])
    return np.concatenate(chosen, axis=1)


def fit_terms(terms: IntArray, prior: FloatArray, data: WhitenedBlock) -> GrowingSums:
    """Return the sums of ``terms`` (k, s, t), fitted."""
    held = _columns_of_terms(terms, data)
    products = np.matmul(held, held.swapaxes(2, 3))
    inverse = np.linalg.pinv(products, hermitian=True) if terms.shape[2] else products
    coefficients = np.einsum("kstu,ksun,kn->kst", inverse, held, data.y, optimize=True)
    residual = data.y[:, None, :] - np.einsum("kst,kstn->ksn", coefficients, held)
    return GrowingSums(
        terms=terms,
        inverse=inverse,
        coefficients=coefficients,
        residual=residual,
        squares=(residual**2).sum(axis=2),
        logdet=np.linalg.slogdet(products)[1],
        prior=prior,
    )


def log_evidence(squares: FloatArray, logdet: FloatArray, within: FloatArray, dof: FloatArray, free: int) -> FloatArray:
    """Return the logarithm of the evidence of sums with ``free`` = points - terms, up to one constant per series.

    Integral over the coefficients and, with the prior 1/sigma, over the noise of the normal likelihood.
    """
    half = 0.5 * (dof + free)
    return np.asarray(
        -0.5 * logdet - 0.5 * free * np.log(2 * np.pi) + log_gamma(half) - half * np.log((within + squares) / 2)
    )


def extend_sums(base: GrowingSums, data: WhitenedBlock, grown: int) -> tuple[GrowingSums, FoundSums]:
    """Return the ``grown`` best sums with one term more than ``base``, and all that are worth remembering."""
    cross = np.matmul(base.residual, data.columns.swapaxes(1, 2))
    held = _columns_of_terms(base.terms, data)
    k, s, t, n = held.shape
    products = np.matmul(held.reshape(k, s * t, n), data.columns.swapaxes(1, 2)).reshape(k, s, t, data.columns.shape[1])
    pulled = np.matmul(base.inverse, products)
    norms = data.norms[:, None, :]
    schur = norms - (products * pulled).sum(axis=2)
    fine = schur > _COLLINEAR * norms
    schur = np.where(fine, schur, 1.0)
    added = cross / schur
    fine &= (added > 0.0) & _addable_columns(base.terms, data.columns.shape[1])
    for at in range(t):
        fine &= base.coefficients[:, :, at, None] >= pulled[:, :, at] * added
    squares = np.maximum(base.squares[..., None] - cross * added, 0.0)
    logdet = base.logdet[..., None] + np.log(schur)
    prior = base.prior[..., None] + _added_prior(base.terms, data.prior)
    worth = log_evidence(squares, logdet, data.within[:, None, None], data.dof[:, None, None], n - t - 1) + prior
    return _select_best(
        base, data, grown, np.where(fine, worth, -np.inf), (pulled, added, schur, squares, logdet, prior)
    )


def _columns_of_terms(terms: IntArray, data: WhitenedBlock) -> FloatArray:
    """Return the columns of the terms of each sum: (k, s, t, n)."""
    return data.columns[np.arange(len(data.y))[:, None, None], terms]


def _addable_columns(terms: IntArray, columns: int) -> Mask:
    """Return which columns may still be added (k, s, c): no term twice."""
    allowed = np.ones((*terms.shape[:2], columns), dtype=bool)
    if terms.shape[2]:
        np.put_along_axis(allowed, terms, False, axis=2)
    return allowed


def _added_prior(terms: IntArray, prior: FloatArray) -> FloatArray:
    """Return the logarithm of the prior of adding each column (k, s, c); the first to come pays for no constant."""
    count = terms.shape[2]
    real = count - (terms == 0).any(axis=2).astype(int)
    first = np.log(ODDS_OF_NO_CONSTANT) if count == 0 else 0.0
    added = prior[:, None, :] + (first + real * np.log(ODDS_OF_A_TERM))[..., None]
    added[:, :, 0] = 0.0 if count == 0 else -np.log(ODDS_OF_NO_CONSTANT)
    return np.asarray(added)


def _select_best(
    base: GrowingSums, data: WhitenedBlock, grown: int, worth: FloatArray, each: tuple[FloatArray, ...]
) -> tuple[GrowingSums, FoundSums]:  # fmt: skip
    """Return the best of all (sum, column): those to grow further as sums, the others by name only."""
    k, s, c = worth.shape
    flat = worth.reshape(k, s * c)
    keep = min(REMEMBERED, s * c)
    chosen = np.argpartition(-flat, keep - 1, axis=1)[:, :keep]
    value = np.take_along_axis(flat, chosen, axis=1)
    order = np.argsort(-value, axis=1, kind="stable")
    chosen, value = np.take_along_axis(chosen, order, axis=1), np.take_along_axis(value, order, axis=1)
    of_sum, of_column = chosen // c, chosen % c
    series = np.arange(k)[:, None]
    terms = np.concatenate([base.terms[series, of_sum], of_column[..., None]], axis=2)
    found = FoundSums(terms, value, each[-1][series, of_sum, of_column])
    return _grow_sums(base, data, terms[:, :grown], of_sum[:, :grown], each), found


def _grow_sums(
    base: GrowingSums, data: WhitenedBlock, terms: IntArray, of_sum: IntArray, each: tuple[FloatArray, ...]
) -> GrowingSums:
    """Return the sums ``terms``, each one of ``base`` with a term more, without fitting them again."""
    pulled, added, schur, squares, logdet, prior = each
    series = np.arange(len(terms))[:, None]
    which = (series, of_sum, terms[..., -1])
    gain = added[which]
    shift = pulled[series, of_sum, :, terms[..., -1]]
    fresh = data.columns[series, terms[..., -1]] - np.einsum(
        "kst,kstn->ksn", shift, _columns_of_terms(terms[..., :-1], data)
    )
    return GrowingSums(
        terms=terms,
        inverse=_border_inverse(base.inverse[series, of_sum], shift, schur[which]),
        coefficients=np.concatenate(
            [base.coefficients[series, of_sum] - shift * gain[..., None], gain[..., None]], axis=2
        ),
        residual=base.residual[series, of_sum] - gain[..., None] * fresh,
        squares=squares[which],
        logdet=logdet[which],
        prior=prior[which],
    )


def _border_inverse(inverse: FloatArray, shift: FloatArray, schur: FloatArray) -> FloatArray:
    """Return the inverse of the products with one column more, from the one without it."""
    t = inverse.shape[-1]
    wide = np.empty((*inverse.shape[:2], t + 1, t + 1))
    reciprocal = 1.0 / schur
    wide[..., :t, :t] = inverse + shift[..., :, None] * shift[..., None, :] * reciprocal[..., None, None]
    wide[..., :t, t] = wide[..., t, :t] = -shift * reciprocal[..., None]
    wide[..., t, t] = reciprocal
    return wide


def best_terms(found: FoundSums) -> IntArray:
    """Return the terms (k, t) of the best sum of each series, -1 at the end where it has fewer."""
    best = found.worth.argmax(axis=1)
    return np.sort(found.terms[np.arange(len(best)), best], axis=1)[:, ::-1]


def exchange_terms(found: FoundSums, data: WhitenedBlock) -> list[FoundSums]:
    """Return the sums that differ from the best one of ``found`` in one term, by the number of its terms."""
    terms = best_terms(found)
    count = (terms >= 0).sum(axis=1)
    return [_find_neighbours(terms, count == t, int(t), data) for t in np.unique(count) if t > 1]


def _find_neighbours(terms: IntArray, which: Mask, count: int, data: WhitenedBlock) -> FoundSums:
    """Return the neighbours of the sums of the series ``which``; of the other series nothing."""
    some = WhitenedBlock(*(getattr(data, name)[which] for name in WhitenedBlock.__slots__))
    own = terms[which, :count]
    without = np.stack([np.delete(own, at, axis=1) for at in range(count)], axis=1)
    _, near = extend_sums(fit_terms(without, _sum_prior(without, some.prior), some), some, 1)
    k, kept = len(which), near.worth.shape[1]
    wide = FoundSums(np.full((k, kept, count), -1), np.full((k, kept), -np.inf), np.full((k, kept), -np.inf))
    for name in FoundSums.__slots__:
        getattr(wide, name)[which] = getattr(near, name)
    return wide


def _sum_prior(terms: IntArray, prior: FloatArray) -> FloatArray:
    """Return the logarithm of the prior of whole sums (k, s): what adding term after term comes to."""
    constant = (terms == 0).any(axis=2)
    real = terms.shape[2] - constant.astype(int)
    each = np.where(terms == 0, 0.0, prior[np.arange(len(terms))[:, None, None], terms]).sum(axis=2)
    return np.asarray(
        each + np.maximum(real - 1, 0) * np.log(ODDS_OF_A_TERM) + np.where(constant, 0.0, np.log(ODDS_OF_NO_CONSTANT))
    )


def merge_found(steps: list[FoundSums]) -> FoundSums:
    """Return the sums of all steps side by side, with -1 for terms that a sum does not have."""
    most = max(step.terms.shape[2] for step in steps)
    wide = [np.pad(step.terms, ((0, 0), (0, 0), (0, most - step.terms.shape[2])), constant_values=-1) for step in steps]
    return FoundSums(
        np.concatenate(wide, axis=1),
        np.concatenate([step.worth for step in steps], axis=1),
        np.concatenate([step.prior for step in steps], axis=1),
    )
