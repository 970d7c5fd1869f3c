"""Quantities as people write them: ``parse_quantity("3.35 TB/s", "bandwidth")`` is 3.35e12, and back again.

Every dimension has one base unit in which numbers are stored (seconds, bytes, bytes per second, hertz …).
SI prefixes count in thousands, binary prefixes (``Ki``, ``Mi`` …) in 1024; the ambiguous ``KB`` is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated

_SI = {"p": -12, "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_LONGEST = 100  # characters of a quantity; anything longer is no quantity
_SECONDS = ((1e-9, "n"), (1e-6, "u"), (1e-3, "m"), (1.0, ""))
_THOUSANDS = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"), (1e15, "P"), (1e18, "E"))
_BINARIES = ((1.0, ""), *((1024.0**power, prefix) for prefix, power in _BINARY.items()))
#: Clocks resolve nanoseconds at best: anything this small comes from rounding.
_REMAINDER_S = 1e-12


def _si_units(unit: str, prefixes: str) -> dict[str, Decimal]:
    return {prefix + unit: Decimal(10) ** _SI[prefix] for prefix in (*prefixes, "")}


_BYTES = _si_units("B", "kMGTPE") | {prefix + "B": Decimal(1024) ** power for prefix, power in _BINARY.items()}
_BITS = {unit: factor / 8 for unit, factor in _si_units("bit", "kMGT").items()}


def _rate_units(units: Mapping[str, Decimal], divisor: str) -> dict[str, Decimal]:
    return {f"{unit}/{divisor}": factor for unit, factor in units.items()}


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a number measures: its name, an example, and the factor to the base unit of each unit it may have."""

    name: str
    base: str
    example: str
    units: Mapping[str, Decimal] = field(compare=False)


_DIMENSIONS = (
    Dimension(
        "time", "s", "2 us", _si_units("s", "pnum") | {"min": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
    ),
    Dimension("cycle count", "cycle", "14 cycles", {"cycle": Decimal(1), "cycles": Decimal(1)}),
    Dimension("size", "B", "64 KiB", _BYTES),
    Dimension("bandwidth", "B/s", "3.35 TB/s", _rate_units(_BYTES, "s") | _rate_units(_BITS, "s")),
    Dimension("frequency", "Hz", "2.5 GHz", _si_units("Hz", "kMGTPE")),
    Dimension("share", "", "3 %", {"%": Decimal("0.01"), "": Decimal(1)}),
    Dimension("rate", "op/s", "7.2 Tflop/s", _rate_units(_si_units("flop", "kMGTPE") | _si_units("op", "kMGTPE"), "s")),
    Dimension(
        "rate per cycle", "op/cycle", "16 flop/cycle", _rate_units({u: Decimal(1) for u in ("flop", "op")}, "cycle")
    ),
    Dimension("bandwidth per cycle", "B/cycle", "64 B/cycle", {"B/cycle": Decimal(1)}),
    Dimension("width", "bit", "512 bit", {"bit": Decimal(1)}),
    Dimension("cost", "USD/h", "4.08 USD/h", {"USD/h": Decimal(1)}),
)
DIMENSIONS: Mapping[str, Dimension] = {dimension.name: dimension for dimension in _DIMENSIONS}

#: Types for the fields of records that are read from documents: a float in the base unit, written with its unit.
Seconds = Annotated[float, DIMENSIONS["time"]]
Bytes = Annotated[float, DIMENSIONS["size"]]


def parse_quantity(text: str, dimension: str) -> float:
    """The number in the base unit of ``dimension`` (a key of ``DIMENSIONS``).

    ValueError says what was expected: for an unknown or missing unit, for what is no plain decimal number
    (``1,5``, ``12:30``, ``nan``, ``inf``), and for numbers too large to be held.
    """
    return parse_with_dimension(text, DIMENSIONS[dimension])


def parse_with_dimension(text: str, dimension: Dimension) -> float:
    """As ``parse_quantity``, for a dimension at hand."""
    stripped = text.strip()
    found = _NUMBER.match(stripped)
    if found is None or len(stripped) > _LONGEST:
        raise ValueError(f"expected a {dimension.name} such as '{dimension.example}'")
    factor = _find_factor(stripped[found.end() :], dimension)
    value = float(Decimal(found[0].replace("_", "")) * factor)
    if not math.isfinite(value):
        raise ValueError(f"the number is too large for a {dimension.name}")
    if dimension.name == "share" and not stripped.endswith("%") and abs(value) > 1:
        raise ValueError(f"a share without % is between 0 and 1; expected a share such as '{dimension.example}'")
    return value


def _find_factor(rest: str, dimension: Dimension) -> Decimal:
    unit = rest.strip().replace("µ", "u").replace("μ", "u")
    if unit in dimension.units:
        return dimension.units[unit]
    expected = f"expected a {dimension.name} such as '{dimension.example}'"
    if not unit:
        raise ValueError(f"the unit is missing; {expected}")
    if rest[0] in ",:.0123456789_":
        raise ValueError(f"not a plain decimal number; {expected}")
    raise ValueError(f"the unit is not known{_suggest_unit(unit, dimension)}; {expected}")


def _suggest_unit(unit: str, dimension: Dimension) -> str:
    if unit.startswith("KB"):
        return " (write kB for 1000 or KiB for 1024 bytes)"
    from difflib import get_close_matches  # only mistakes need it

    by_lower = {known.lower(): known for known in dimension.units}
    close = get_close_matches(unit.lower(), by_lower, n=1, cutoff=0.5)
    return f" (did you mean '{by_lower[close[0]]}'?)" if close and by_lower[close[0]] else ""


def _require_finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a quantity that can be shown")
    return value + 0.0  # turns -0.0 into 0.0


def _format_three_digits(value: float) -> str:
    """Three significant digits without exponent for 1 to 999; whole numbers above."""
    size = abs(value)
    return (
        f"{value:.3g}"
        if size < 0.9995 or size >= 1e15
        else f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"
    )


def _format_scaled(value: float, unit: str, steps: tuple[tuple[float, str], ...]) -> str:
    """``value`` in the largest of the ``steps`` (factor, prefix; rising) in which it shows at least 1."""
    fitting = [step for step in steps if abs(value) >= step[0] * 0.9995] or [steps[0]]
    factor, prefix = fitting[-1]
    return f"{_format_three_digits(value / factor)} {prefix}{unit}"


def format_seconds(seconds: float) -> str:
    """Three significant digits in ns, us, ms or s, with the sign; ValueError for NaN and infinity.

    What differences of sums leave behind, below a picosecond, is nothing.
    """
    value = _require_finite(seconds)
    return "0 s" if abs(value) < _REMAINDER_S else _format_scaled(value, "s", _SECONDS)


def format_bytes(size: float) -> str:
    """Bytes with a binary prefix, ``64 KiB`` or ``1.50 MiB``; ValueError for NaN and infinity."""
    value = _require_finite(size)
    return re.sub(r"\.0+ ", " ", _format_scaled(value, "B", _BINARIES))


def format_share(share: float) -> str:
    """A share of one in per cent, ``2.1 %``, with two digits left of anything smaller; ValueError for NaN."""
    percent = _require_finite(share) * 100
    if abs(percent) >= 1e6:
        return f"{percent:.3g} %"
    return f"{percent:.1f} %" if percent == 0 or abs(percent) >= 0.95 else f"{percent:.2g} %"


def format_count(count: int, noun: str) -> str:
    """A number of things, ``1 rank`` or ``2,048 ranks``; ``noun`` is the singular, whose plural ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_quantity(value: float, dimension: str) -> str:
    """``value`` (in the base unit of ``dimension``) with three significant digits, as ``parse_quantity`` reads it."""
    special = {"time": format_seconds, "size": format_bytes, "share": format_share}
    if dimension in special:
        return special[dimension](value)
    base = DIMENSIONS[dimension].base
    if dimension in ("bandwidth", "frequency", "rate"):
        return _format_scaled(_require_finite(value), base, _THOUSANDS)
    return f"{_require_finite(value):.6g} {base}"
