"""Scales of axes: where a value lies between both ends, and which values are named on the axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.model.reports import Axis

#: About so many values are named on an axis.
_TICKS: Final = 5


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from ``low`` to ``high``, by value or by its logarithm."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[float, ...]

    def can_show(self, value: float) -> bool:
        """Return whether the axis has a place for a value."""
        return value > 0 or not self.logarithmic

    def to_share(self, value: float) -> float:
        """Return where a value lies, 0 at the lower end and 1 at the upper one."""
        low, high, value = (math.log10(part) if self.logarithmic else part for part in (self.low, self.high, value))
        return 0.5 if high <= low else relative_place(value, low, high)


def relative_place(value: float, low: float, high: float) -> float:
    """Return where a value lies between ``low`` (0) and ``high`` (1); outside of them at the end that is nearer."""
    width = high / 2 - low / 2  # halves: the difference of two numbers may be too large for one
    return min(1.0, max(0.0, (value / 2 - low / 2) / width)) if width > 0 else 0.0


def fit_scale(values: Sequence[float], axis: Axis) -> Scale | None:
    """Return the scale that holds all values, its ends rounded; None where a logarithmic one can hold none of them."""
    if axis.scale == "log":
        above = [float(value) for value in values if value > 0]
        return _build_log_scale(min(above), max(above)) if above else None
    return _build_linear_scale(float(min(values)), float(max(values)))


def _build_linear_scale(low: float, high: float) -> Scale:
    # the next larger of 1, 2 and 5 times a power of ten
    rough = (high / 2 - low / 2) / _TICKS * 2 or abs(low) / _TICKS or 1.0
    power = 10.0 ** math.floor(math.log10(rough)) if rough >= 1e-300 else 1e-300
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    if low > 0 and low < 0.5 * high:
        low = 0.0
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = tuple(number * step for number in range(first, max(last, first + 1) + 1))
    return Scale(ticks[0], ticks[-1], False, ticks)


def _build_log_scale(low: float, high: float) -> Scale:
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [tick for power in powers for factor in factors if low <= (tick := factor * 10.0**power) <= high]
        if len(ticks) > 2:
            return Scale(low, high, True, tuple(ticks[:: max(1, -(-len(ticks) // (2 * _TICKS)))]))
    return Scale(low, high, True, (low, high) if high > low else (low,))
