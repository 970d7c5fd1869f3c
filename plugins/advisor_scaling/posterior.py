"""The sums that remain after the search, fitted exactly, each with its probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling.search import log_evidence

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

#: A sum of terms that is that much less probable than the best one is forgotten.
NEGLIGIBLE: Final = 1e-4
#: The truth is never quite one of the sums, so the data count for less than the evidence says (a power posterior:
#: P. Grünwald and T. van Ommen, Bayesian Analysis 12, 2017), and with each further parameter the search sees less of
#: what else is possible. Chosen on synthetic cases so that intervals hold as often as they say.
TEMPER: Final = 0.75
WIDER_BY_PARAMETER: Final = 0.12


@dataclass(frozen=True, slots=True)
class SumCandidates:
    """The sums (s) that explain each series (k), most probable first, with up to t terms.

    ``terms`` (k, s, t) indexes the compounds of the series (-1: none), ``coefficients`` (k, s, t), ``covariance``
    (k, s, t, t), ``probability`` (k, s) adds up to 1, ``sigma`` (k, s) is the relative noise of a run with ``degrees``
    (k, s) of freedom, ``squares`` (k, s) what is left.
    """

    terms: IntArray
    coefficients: FloatArray
    covariance: FloatArray
    probability: FloatArray
    sigma: FloatArray
    degrees: FloatArray
    squares: FloatArray


def mask_repeated_sums(terms: IntArray, worth: FloatArray) -> FloatArray:
    """Return ``worth`` (k, s) with minus infinity where the same set of terms (k, s, t) stands further ahead."""
    ordered = np.sort(terms, axis=2)
    base = int(terms.max(initial=0)) + 2
    key = ((ordered + 1) * float(base) ** np.arange(terms.shape[2])).sum(axis=2)
    order = np.argsort(key, axis=1, kind="stable")
    ascending = np.take_along_axis(key, order, axis=1)
    earlier = np.zeros(key.shape, dtype=bool)
    np.put_along_axis(earlier, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return np.where(earlier, -np.inf, worth)


def fit_sums(
    terms: IntArray,
    prior: FloatArray,
    columns: FloatArray,
    y: FloatArray,
    within: FloatArray,
    dof: FloatArray,
    wider: float = 1.0,
) -> SumCandidates:
    """Return the sums of ``terms`` (k, s, t) fitted to ``y`` (k, n) by ``columns`` (k, c, n), all in units of noise.

    ``wider`` is what standard errors are multiplied by.
    """
    used = terms >= 0
    series = np.arange(len(y))[:, None, None]
    design = columns[series, np.maximum(terms, 0)] * used[..., None]
    scale = np.maximum(np.abs(design).max(axis=3), 1e-300)
    design = design / np.where(used, scale, 1.0)[..., None]
    products = np.matmul(design, design.swapaxes(2, 3)) + np.eye(terms.shape[2]) * np.where(used, 0.0, 1.0)[..., None]
    inverse = np.linalg.pinv(products, hermitian=True)
    target = np.einsum("kstn,kn->kst", design, y)
    coefficients = np.einsum("kstu,ksu->kst", inverse, target)
    rest = y[:, None, :] - np.einsum("kst,kstn->ksn", coefficients, design)
    squares = (rest**2).sum(axis=2)
    count = used.sum(axis=2)
    worth = _compute_worth(prior, used, coefficients, count, squares, products, y, within, dof, scale)
    degrees = dof[:, None] + y.shape[1] - count
    variance = (within[:, None] + squares) / degrees
    unit = np.where(used, scale, 1.0)
    return SumCandidates(
        terms=terms,
        coefficients=np.maximum(coefficients / unit, 0.0),
        covariance=inverse * (wider**2 * variance)[..., None, None] / (unit[..., :, None] * unit[..., None, :])
        * (used[..., :, None] & used[..., None, :]),
        probability=_compute_probabilities(worth),
        sigma=np.sqrt(variance),
        degrees=degrees,
        squares=squares,
    )  # fmt: skip


def _compute_probabilities(worth: FloatArray) -> FloatArray:
    """Return the probability of each sum (k, s) from the logarithm of its worth."""
    shares = np.where(np.isfinite(worth), np.exp(TEMPER * (worth - worth.max(axis=1, keepdims=True))), 0.0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _compute_worth(
    prior: FloatArray, used: npt.NDArray[np.bool_], coefficients: FloatArray, count: IntArray, squares: FloatArray,
    products: FloatArray, y: FloatArray, within: FloatArray, dof: FloatArray, scale: FloatArray,
) -> FloatArray:  # fmt: skip
    """Return the logarithm of what each sum is worth (k, s); a negative coefficient is no physics."""
    logdet = np.linalg.slogdet(products)[1] + (2 * np.log(np.where(used, scale, 1.0))).sum(axis=2)
    worth = np.full(squares.shape, -np.inf)
    for terms in np.unique(count):
        free = y.shape[1] - int(terms)
        value = log_evidence(squares, logdet, within[:, None], dof[:, None], free)
        worth = np.where(count == terms, value, worth)
    bad = (np.where(used, coefficients, 1.0) <= 0.0).any(axis=2) | ~np.isfinite(worth) | ~np.isfinite(prior)
    worth = np.where(bad, -1e300, worth + np.where(np.isfinite(prior), prior, 0.0))
    bad &= ~bad.all(axis=1, keepdims=True)
    return np.where(bad, -np.inf, worth)


def select_best(candidates: SumCandidates, number: int) -> SumCandidates:
    """Return the ``number`` most probable sums of each series in that order."""
    order = np.argsort(-candidates.probability, axis=1, kind="stable")[:, :number]
    series = np.arange(len(order))[:, None]
    chosen = candidates.probability[series, order]
    chosen = np.where(chosen >= NEGLIGIBLE * chosen[:, :1], chosen, 0.0)
    return SumCandidates(
        terms=candidates.terms[series, order],
        coefficients=candidates.coefficients[series, order],
        covariance=candidates.covariance[series, order],
        probability=chosen / chosen.sum(axis=1, keepdims=True),
        sigma=candidates.sigma[series, order],
        degrees=candidates.degrees[series, order],
        squares=candidates.squares[series, order],
    )
