"""Two machines beside each other: portability, where one overtakes the other, and the speed for the price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from advisor.model.records import FloatArray
    from advisor_scaling.linear.application import Column
    from advisor_scaling.linear.model import LinearModel

_HALVINGS: Final = 60
_STEPS: Final = 400


@dataclass(frozen=True, slots=True)
class Crossing:
    """At ``at`` of a parameter the ``faster`` machine (0 or 1) becomes the faster one."""

    at: float
    faster: int


def time_ratio(one: LinearModel, two: LinearModel, points: FloatArray) -> FloatArray:
    """Return the time on the second machine over that on the first (t,): the portability of performance."""
    return np.asarray(two(points) / one(points))


def find_crossings(
    one: LinearModel, two: LinearModel, axis: int, low: float, high: float, held: Sequence[float]
) -> tuple[Crossing, ...]:  # fmt: skip
    """Return where the times of two machines cross along a parameter; the others are as in ``held`` (m,)."""
    x = np.geomspace(low, high, _STEPS)
    apart = _make_difference(one, two, axis, held)
    signs = np.sign(apart(x))
    found = []
    for at in np.flatnonzero(signs[1:] * signs[:-1] < 0):
        root = _find_root(apart, x[at], x[at + 1])
        found.append(Crossing(root, 0 if signs[at + 1] < 0 else 1))
    return tuple(found)


def _make_difference(
    one: LinearModel, two: LinearModel, axis: int, held: Sequence[float]
) -> Callable[[FloatArray], FloatArray]:  # fmt: skip
    def time_difference(x: FloatArray) -> FloatArray:
        points = np.tile(np.asarray(held, dtype=float), (len(x), 1))
        points[:, axis] = x
        return np.asarray(one(points) - two(points))

    return time_difference


def _find_root(apart: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    start = float(np.sign(apart(np.array([low]))[0]))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if np.sign(apart(np.array([middle]))[0]) == start:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@dataclass(frozen=True, slots=True)
class SpeedPerPrice:
    """Speed for money, 1 / (seconds x price), at each of ``rates`` of a machine parameter; the ``best`` rate."""

    best: float
    rates: FloatArray
    speed_per_price: FloatArray


def find_best_rate(
    model: LinearModel, column: Column, point: Sequence[float], rates: FloatArray, price: FloatArray
) -> SpeedPerPrice:  # fmt: skip
    """Return which rate (1 / cost of ``column``) gives most speed for its ``price`` (r,) at a point (figure 6).

    ``rates`` (r,) ascend. Speed is 1 / T; multiply by the operations for MFLOPS. Between the rates the optimum is that
    of the parabola through the three highest values.
    """
    at = np.asarray(point, dtype=float)[None, :]
    seconds = np.array([replace(model, beta={**model.beta, column: 1.0 / rate})(at)[0] for rate in rates])
    worth = 1.0 / (seconds * price)
    return SpeedPerPrice(_find_peak(np.log(rates), worth), rates, worth)


def _find_peak(x: FloatArray, y: FloatArray) -> float:
    top = int(y.argmax())
    if top in (0, len(x) - 1):
        return float(np.exp(x[top]))
    a, b, _ = np.polyfit(x[top - 1 : top + 2], y[top - 1 : top + 2], 2)
    return float(np.exp(-b / (2 * a)))
