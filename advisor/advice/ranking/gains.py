"""The expected gain of a change."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ExpectedGain(NamedTuple):
    """The expected gain of a change in seconds, its interval, and its basis."""

    expected_s: float
    low_s: float
    high_s: float
    basis: Literal["simulation", "history", "similar", "calibration", "experiment"]


def cap_gain(expected_s: float, low_s: float, high_s: float, most_s: float) -> tuple[float, tuple[float, float]]:
    """Return a gain and its interval with nothing above ``most_s``: one that expects more stays as unsure as it was."""
    if expected_s <= most_s or expected_s <= 0.0:
        return expected_s, (low_s, min(high_s, most_s))
    return most_s, (low_s * most_s / expected_s, most_s)
