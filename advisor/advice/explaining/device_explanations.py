"""Bounds of a run with devices explained: sums of their levels, each a mean over the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.advice.explaining.records import ExplainedNumber, NumberInput
from advisor.model.devices import DEVICE_LEVELS

if TYPE_CHECKING:
    from advisor.model.devices import DeviceUse
    from advisor.model.records import Bound

_FORMULA: Final = "sum of the levels up to it; each is the mean over the devices of the seconds they spend so"
_PEAK: Final = "operations and bytes of the kernels at the peak rates of the device"


def explain_device_bound(bound: Bound, use: DeviceUse) -> ExplainedNumber:
    """Return how a bound of a run with devices came about (docs/devices.md)."""
    place = next(number for number, level in enumerate(DEVICE_LEVELS) if level.bound == bound.name)
    names = (
        ["compute", *(str(level.gap) for level in DEVICE_LEVELS[2 : place + 1])] if bound.seconds is not None else []
    )
    inputs = tuple(
        NumberInput(name, float(use.seconds[name].mean()), "s", f"mean over {len(use.devices)} devices")
        for name in names
    )
    notes = tuple(
        note for note in (bound.reason, bound.collect and f"to record it: {bound.collect}") if note is not None
    )
    return ExplainedNumber(
        "bound", bound.name, DEVICE_LEVELS[place].adds, bound.seconds, "s", bound.status,
        _PEAK if bound.name == "R" else _FORMULA, inputs, notes=notes,
        expression=["+", *(["input", at] for at in range(len(inputs)))] if inputs else None,
    )  # fmt: skip
