"""What a change is expected to win."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ExpectedGain(NamedTuple):
    """What a change is expected to win in seconds, the least and the most of it, and how that is known."""

    expected_s: float
    low_s: float
    high_s: float
    basis: Literal["simulation", "history", "similar", "calibration"]
