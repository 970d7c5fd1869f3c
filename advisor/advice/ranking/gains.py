"""The expected gain of a change."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ExpectedGain(NamedTuple):
    """The expected gain of a change in seconds, its interval, and its basis."""

    expected_s: float
    low_s: float
    high_s: float
    basis: Literal["simulation", "history", "similar", "calibration", "experiment"]
