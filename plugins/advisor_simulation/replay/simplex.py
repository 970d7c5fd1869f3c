"""The minimum of a function of a few numbers, from its values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: The corners of the first simplex differ from its start by this share in one coordinate each.
_FIRST_STEP: Final = 0.05


def minimize_simplex(
    function: Callable[[FloatArray], float], start: FloatArray, bounds: FloatArray, evaluations: int, precision: float
) -> FloatArray:
    """Return the point (n,) with the least value that was found from ``start`` (n,), no coordinate of it zero.

    The simplex method of J. Nelder and R. Mead, The Computer Journal 7 (1965), within ``bounds`` (n, 2): a point beyond
    them is moved onto them. It ends when all corners are within ``precision`` of the best, or after so many
    ``evaluations`` (a step that has begun is finished).
    """
    low, high = bounds.T
    used = 0

    def value_at(point: FloatArray) -> tuple[FloatArray, float]:
        nonlocal used
        used += 1
        inside = np.clip(point, low, high)
        return inside, function(inside)

    corners = [value_at(point) for point in _first_corners(start, high)]
    while used < evaluations:
        corners.sort(key=lambda corner: corner[1])
        best, worst = corners[0], corners[-1]
        if max(float(np.abs(point - best[0]).max()) for point, _ in corners[1:]) <= precision:
            break
        centre = np.mean([point for point, _ in corners[:-1]], axis=0)
        tried = value_at(2.0 * centre - worst[0])
        if tried[1] < best[1]:
            further = value_at(3.0 * centre - 2.0 * worst[0])
            tried = min(tried, further, key=lambda corner: corner[1])
        elif tried[1] >= corners[-2][1]:
            nearer = tried if tried[1] < worst[1] else worst
            contracted = value_at(0.5 * (centre + (2.0 * centre - worst[0] if nearer is tried else worst[0])))
            if contracted[1] > nearer[1]:
                corners = [best, *(value_at(0.5 * (best[0] + point)) for point, _ in corners[1:])]
                continue
            tried = contracted
        corners[-1] = tried
    return min(corners, key=lambda corner: corner[1])[0]


def _first_corners(start: FloatArray, high: FloatArray) -> list[FloatArray]:
    """Return ``start`` and one point beside it for each coordinate, mirrored where it would lie above ``high``."""
    corners = [start]
    for axis in range(len(start)):
        corner = start.copy()
        corner[axis] *= 1.0 + _FIRST_STEP
        corner[axis] = 2.0 * high[axis] - corner[axis] if corner[axis] > high[axis] else corner[axis]
        corners.append(corner)
    return corners
