"""The composition algebra: from isolated kernels and chains of kernels to the application.

Taylor, Wu, Geisler and Stevens, "Using Kernel Couplings to Predict Parallel Application Performance" (seed 000),
sections 2 and 3. All functions work along the last axis, so that a leading axis may hold resamples; they use only
sums, products and quotients, so that arrays of symbols pass through them as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

    Array = npt.NDArray[Any]

#: How isolated values combine: times and misses add up, rates are averaged by the time in which they held.
Combination = Literal["sum", "rate"]


def chain_windows(kernels: int, length: int) -> tuple[tuple[int, ...], ...]:
    """Return the chains of ``length`` neighbours in a loop of ``kernels``, as indices.

    Cyclic, as in tables 2a to 4a: the last kernel is followed by the first of the next iteration. Of the chain of all
    kernels there is only one, since in a loop every rotation of it is the same.
    """
    if not 1 <= length <= kernels:
        raise ValueError(f"a chain of {length} in a loop of {kernels} kernels")
    starts = 1 if length == kernels else kernels
    return tuple(tuple((start + step) % kernels for step in range(length)) for start in range(starts))


def build_membership(kernels: int, length: int) -> IntArray:
    """Return (chains, kernels): 1 where the chain holds the kernel."""
    chains = chain_windows(kernels, length)
    member = np.zeros((len(chains), kernels), dtype=np.int64)
    for row, chain in enumerate(chains):
        member[row, list(chain)] = 1
    return member


def compute_expected(alone: Array, member: Array, weights: Array | None = None) -> Array:
    """Return what chains (..., W) would show if their kernels (..., K) did not interact.

    The sum of the isolated values (formula 2), or with ``weights`` (the kernels' times) their weighted mean, as
    section 2 asks for rates.
    """
    if weights is None:
        return np.asarray(alone @ member.T)
    return np.asarray(((alone * weights) @ member.T) / (weights @ member.T))


def compute_couplings(alone: Array, together: Array, member: Array, weights: Array | None = None) -> Array:
    """Return C_S (..., W), the coupling of a chain: what it shows over that without interaction (formulas 1 and 2)."""
    return np.asarray(together / compute_expected(alone, member, weights))


def compute_coefficients(coupling: Array, times: Array, member: Array) -> Array:
    """Return a_j (..., K): the mean of the couplings of all chains that hold the kernel, weighted by their times.

    Section 3; the formulas printed there for four kernels in chains of two and three are cases of this one.
    """
    return np.asarray(((coupling * times) @ member) / (times @ member))


def predict_value(coefficient: Array, models: Array, weights: Array | None = None) -> Array:
    """Return the value of one pass of the loop (...): the sum of a_j E_j (formula 3), or the weighted mean of rates."""
    if weights is None:
        return np.asarray((coefficient * models).sum(axis=-1))
    return np.asarray((coefficient * models * weights).sum(axis=-1) / weights.sum(axis=-1))


def relative_error(value: Array | float, actual: Array | float) -> Array:
    """Return (predicted - actual) / actual; the tables print its size in percent."""
    return np.asarray((np.asarray(value) - actual) / actual)
