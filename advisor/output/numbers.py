"""Numbers as they stand on a screen: the value is given, only its digits and unit are chosen here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.model.units import format_bytes, format_quantity, format_seconds, format_share

if TYPE_CHECKING:
    from advisor.model.records import Status
    from advisor.model.reports import Axis

#: How a status is marked in front of a number; measured numbers carry no mark.
MARKS: dict[Status, str] = {"measured": "", "estimated": "~", "modelled": "^", "unavailable": "?"}
LEGEND = {"~": "~ estimated", "^": "^ modelled"}

#: Units of facts that are not written behind the number.
_UNNAMED = ("", "ratio", "count", "name", "yes/no")
_NOT_FINITE = "not a number"
#: Larger numbers are no times or shares of a run any more, and their digits would fill the page.
_LONGEST = 1e9
_SCALES = ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (1e-6, "us", 1e6), (0.0, "ns", 1e9))


def format_duration(value: float | None) -> str:
    """Return one duration with its unit, ``4.00 s``; ``-`` without a value."""
    if value is None:
        return "-"
    return format_seconds(value) if math.isfinite(value) else _NOT_FINITE


def format_percentage(value: float | None) -> str:
    """Return a share of one in per cent; ``-`` without a value."""
    if value is None:
        return "-"
    return format_share(value) if math.isfinite(value) else _NOT_FINITE


def format_interval(values: tuple[float, float]) -> str:
    """Return two durations as ``2.50 s to 3.60 s``."""
    return f"{format_duration(values[0])} to {format_duration(values[1])}"


def format_value(value: float | str | bool, unit: str) -> str:
    """Return a fact's value with its unit; truth values as yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return _NOT_FINITE
    special = {
        "s": format_seconds, "B": format_bytes, "B/s": _format_rate, "share": format_share, "%": format_share
    }  # fmt: skip
    if unit in special:
        return special[unit](value)
    digits = f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"
    return digits if unit in _UNNAMED else f"{digits} {unit}"


def format_optional(value: float | None, unit: str) -> str:
    """Return a value with its unit; ``-`` without one."""
    return "-" if value is None else format_value(float(value), unit)


def format_axis_value(value: float, axis: Axis) -> str:
    """Return a place on an axis: its name where the axis has names, else the value with its unit."""
    if axis.names and value == int(value) and 0 <= value < len(axis.names):
        return axis.names[int(value)]
    return "" if axis.names else format_value(value, axis.unit)


def _format_rate(value: float) -> str:
    """Return bytes a second in thousands, as networks and memories are rated, and as options take them."""
    return format_quantity(value, "bandwidth")


def format_duration_column(values: Sequence[float]) -> list[str]:
    """Return durations of one column in one unit with the same decimals, so that their digits line up.

    The largest decides: it shows four significant digits.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    unit, factor = next((unit, factor) for least, unit, factor in _SCALES if largest >= least)
    if largest == 0:
        unit, factor = "s", 1.0
    whole_digits = len(str(int(largest * factor)))
    decimals = min(3, max(0, 4 - whole_digits))
    return [_format_fixed(value * factor, decimals, unit) for value in values]


def _format_fixed(value: float, decimals: int, unit: str) -> str:
    if not math.isfinite(value):
        return _NOT_FINITE
    if abs(value) >= _LONGEST:
        return f"{value:.4g} {unit}"
    return f"{round(value, decimals) + 0.0:.{decimals}f} {unit}"


def format_percentage_column(values: Sequence[float]) -> list[str]:
    """Return shares of one column in per cent with one decimal, so that their digits line up."""
    return [_format_fixed(value * 100, 1, "%") for value in values]
