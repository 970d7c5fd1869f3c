"""Least squares without negative coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray

#: A gradient below this share of its terms' size is rounding.
_ROUNDING: Final = 1e-13
#: Every coefficient is freed once or twice; more means that rounding sends them round in circles.
_STEPS_PER_COEFFICIENT: Final = 10


def solve_nnls(design: FloatArray, values: FloatArray) -> FloatArray:
    """Return the x >= 0 (n,) with the least |``design`` (m, n) x - ``values`` (m,)|.

    The active-set method of C. Lawson and R. Hanson, Solving Least Squares Problems, 1974, chapter 23, algorithm NNLS:
    the coefficient that lowers the error most is freed, those that would become negative are set to zero again, until
    the gradient of none that is zero points upwards. Raises ``ArithmeticError`` if that does not end.
    """
    count = design.shape[1]
    x = np.zeros(count)
    free = np.zeros(count, dtype=bool)
    dependent = np.zeros(count, dtype=bool)  # would be freed but for rounding, until something else has changed
    size = np.abs(design).T @ np.abs(values)
    for _ in range(_STEPS_PER_COEFFICIENT * count + 1):
        gradient = design.T @ (values - design @ x)
        rising = ~free & ~dependent & (gradient > _ROUNDING * size)
        if not rising.any():
            return x
        steepest = int(np.argmax(np.where(rising, gradient, -np.inf)))
        free[steepest] = True
        trial = _solve_free(design, values, free)
        if trial[steepest] <= 0.0:
            free[steepest], dependent[steepest] = False, True
            continue
        dependent[:] = False
        while (trial[free] <= 0.0).any():
            falling = np.flatnonzero(free & (trial <= 0.0))
            shares = x[falling] / (x[falling] - trial[falling])
            x += shares.min() * (trial - x)
            free[falling[shares.argmin()]] = False
            free &= x > 0.0
            x[~free] = 0.0
            trial = _solve_free(design, values, free)
        x = trial
    raise ArithmeticError("the least-squares problem without negative coefficients was not solved")


def _solve_free(design: FloatArray, values: FloatArray, free: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the least-squares solution with all but the ``free`` coefficients zero."""
    solution = np.zeros(design.shape[1])
    solution[free] = np.linalg.lstsq(design[:, free], values, rcond=None)[0]
    return solution
