"""The expected gain of a change."""

from __future__ import annotations

from typing import Literal, NamedTuple


class ExpectedGain(NamedTuple):
    """The expected gain of a change in seconds, its interval, and its basis."""

    expected_s: float
    low_s: float
    high_s: float
    basis: Literal["simulation", "history", "similar", "calibration", "experiment"]

    def fit_below(self, most_s: float) -> ExpectedGain:
        """Return the gain with nothing above ``most_s``: what expects more is as unsure as before, of less."""
        if self.expected_s <= most_s or self.expected_s <= 0.0:
            return self._replace(high_s=min(self.high_s, most_s))
        part = most_s / self.expected_s
        return self._replace(expected_s=most_s, low_s=self.low_s * part, high_s=most_s)
