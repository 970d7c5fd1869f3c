"""Which factors of each parameter are worth combining, by the lines on which only that parameter changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling.terms import UNIT_FACTOR, Factor, FactorLibrary

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: How many factors of each parameter are combined, by the number of parameters.
FACTORS_LIMIT: Final = {1: 10_000, 2: 14, 3: 7}
FACTORS_LIMIT_OF_MANY: Final = 4
#: Factors that are always among them, as far as the library has them: power and logarithms.
_USUAL: Final = ((1.0, 0), (0.0, 1), (2.0, 0), (-1.0, 0))
_POINTS_OF_A_LINE: Final = 3


def select_promising(
    libraries: Sequence[FactorLibrary],
    tables: Sequence[FloatArray],
    points: FloatArray,
    y: FloatArray,
    weight: FloatArray,
) -> list[IntArray]:
    """Return for each parameter the factors to combine: (k, factors) indexes into its library, ``UNIT_FACTOR`` first.

    ``tables`` hold each library at the ``points`` (n, m); ``y`` and ``weight`` are (k, n).
    """
    many = FACTORS_LIMIT.get(len(libraries), FACTORS_LIMIT_OF_MANY)
    return [
        _select_promising_factors(each, table, group_lines(points, axis), y, weight, many)
        for axis, (each, table) in enumerate(zip(libraries, tables, strict=True))
    ]


def factor_products(chosen: Sequence[IntArray]) -> IntArray:
    """Return all products of one factor per parameter as indexes (k, c, m), the constant first."""
    grids = np.meshgrid(*[np.arange(each.shape[1]) for each in chosen], indexing="ij")
    return np.stack([each[:, grid.ravel()] for each, grid in zip(chosen, grids, strict=True)], axis=2)


def product_values(tables: Sequence[FloatArray], chosen: Sequence[IntArray]) -> FloatArray:
    """Return the values of ``factor_products(chosen)`` at the points of the tables: (k, c, n)."""
    value = tables[0][chosen[0]]
    for table, each in zip(tables[1:], chosen[1:], strict=True):
        value = (value[:, :, None, :] * table[each][:, None, :, :]).reshape(len(value), -1, value.shape[-1])
    return value


def group_lines(points: FloatArray, axis: int) -> FloatArray:
    """Return which points (n,) lie on which line along ``axis``, as ones (lines, n); short lines tell nothing."""
    others = np.delete(points, axis, axis=1)
    _, line = np.unique(others, axis=0, return_inverse=True)
    members = np.equal(line.ravel()[None, :], np.arange(line.max() + 1)[:, None]).astype(float)
    return np.asarray(members[members.sum(axis=1) >= _POINTS_OF_A_LINE])


def _select_promising_factors(
    library: FactorLibrary, table: FloatArray, members: FloatArray, y: FloatArray, weight: FloatArray, many: int
) -> IntArray:
    """Return the ``many`` factors (k, many) that explain the lines best, ``UNIT_FACTOR`` first."""
    number = len(library.factors)
    if many >= number:
        return np.tile(np.arange(number), (len(y), 1))
    left = _squares_left(table, members, y, weight) if len(members) else np.ones((len(y), number))
    usual = [at for at, factor in enumerate(library.factors) if _is_usual(factor)]
    left[:, usual] *= 1e-30
    many = max(many, len(usual) + 3)
    return np.sort(np.argpartition(left, many - 1, axis=1)[:, :many], axis=1)


def _is_usual(factor: Factor) -> bool:
    """Return whether a factor is always combined: whole powers, and what sets in with the second processor."""
    whole = factor.shape == "all" and (float(factor.power), factor.logs) in _USUAL
    return whole or factor == UNIT_FACTOR or (factor.shape == "beyond" and factor.knee == 1.0)


def _squares_left(table: FloatArray, members: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the squares left (k, factors) when each line is fitted by a constant and a multiple of the factor."""
    per_line = members.T
    ones = weight @ per_line
    sum_y = (weight * y) @ per_line
    sum_yy = (weight * y * y) @ per_line
    sum_f = np.matmul(weight[:, None, :] * table, per_line)
    sum_ff = np.matmul(weight[:, None, :] * table**2, per_line)
    sum_fy = np.matmul((weight * y)[:, None, :] * table, per_line)
    variance = np.maximum(sum_ff - sum_f**2 / ones[:, None, :], 0.0)
    together = sum_fy - sum_f * (sum_y / ones)[:, None, :]
    alone = sum_yy - sum_y**2 / ones
    gained = np.divide(together**2, variance, out=np.zeros_like(variance), where=variance > 1e-12 * sum_ff)
    return np.asarray(np.maximum(alone[:, None, :] - gained, 0.0).sum(axis=2) + 1e-12 * alone.sum(axis=1)[:, None])
