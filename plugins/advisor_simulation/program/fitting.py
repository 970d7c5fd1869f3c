"""Whole-numbered linear functions of loop indices, found from values and checked against all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import IntArray

#: Rows from which a function is solved for; all rows check it.
_SAMPLE: Final = 256


@dataclass(frozen=True, slots=True)
class LinearForm:
    """``constant`` + the sum of ``factors`` times the columns."""

    factors: tuple[int, ...]
    constant: int

    def evaluate_rows(self, columns: IntArray) -> IntArray:
        """Return the values for rows of columns (n, d)."""
        value: IntArray = columns @ np.array(self.factors, dtype=np.int64) + self.constant
        return value


def fit_linear(columns: IntArray, values: IntArray) -> LinearForm | None:
    """Return the whole-numbered linear function of the columns (n, d) that gives all values (n,), None without one.

    Columns that never change have no factor.
    """
    if not len(values):
        return None
    moving = [k for k in range(columns.shape[1]) if (columns[:, k] != columns[0, k]).any()]
    factors = np.zeros(columns.shape[1], dtype=np.int64)
    if moving:
        place = _choose_rows(columns[:, moving])
        rows = columns[place][:, moving].astype(np.float64) - columns[0, moving]
        wanted = (values[place] - values[0]).astype(np.float64)
        solved = np.linalg.lstsq(rows, wanted, rcond=None)[0]
        whole = np.rint(solved)
        if not np.allclose(solved, whole, atol=1e-4, rtol=1e-9):
            return None
        factors[moving] = whole.astype(np.int64)
    constant = int(values[0] - columns[0] @ factors)
    form = LinearForm(tuple(map(int, factors)), constant)
    return form if np.array_equal(form.evaluate_rows(columns), values) else None


def _choose_rows(columns: IntArray) -> IntArray:
    """Return rows in which every column changes: some at random, and those with the extremes of each column."""
    n = len(columns)
    spread = np.random.default_rng(1).integers(0, n, min(n, _SAMPLE))
    extremes = np.r_[columns.argmin(axis=0), columns.argmax(axis=0)]
    return np.unique(np.r_[spread, extremes])
