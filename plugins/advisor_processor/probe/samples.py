"""Samples of a kernel -> a number with its spread; a quiet sample is a fast one, so the best counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Final

#: Beyond this spread of its samples a number is called noisy.
NOISY: Final = 0.1
#: How far a sample may lie below a whole number of cycles and still be that number: the clock beside it was noisy.
_CLOSE: Final = 0.2


@dataclass(frozen=True, slots=True)
class Samples:
    """Times of one operation in seconds, and of one clock cycle beside each of them."""

    seconds: tuple[float, ...]
    cycle_s: tuple[float, ...]

    @property
    def best_s(self) -> float:
        """The shortest time: whatever disturbs a measurement makes it longer."""
        return min(self.seconds)

    @property
    def cycles(self) -> float:
        """The cycles of one operation: the first quartile, as the clock beside a sample may be disturbed as well."""
        ratios = [time / cycle for time, cycle in zip(self.seconds, self.cycle_s, strict=True)]
        return quantiles(ratios, n=4, method="inclusive")[0] if len(ratios) > 1 else ratios[0]

    @property
    def fewest_cycles(self) -> float:
        """The cycles of the fastest operation at the fastest clock: for what noise can only make slower."""
        return self.best_s / min(self.cycle_s)

    @property
    def spread(self) -> float:
        """The middle half of the samples, in parts of their median; 0 for fewer than four."""
        if len(self.seconds) < 4:
            return 0.0
        low, middle, high = quantiles(self.seconds, n=4)
        return (high - low) / middle

    @property
    def typical_s(self) -> float:
        """The first quartile of the times of one operation: what is usual when nothing disturbs."""
        return quantiles(self.seconds, n=4, method="inclusive")[0] if len(self.seconds) > 1 else self.seconds[0]

    def merge_samples(self, other: Samples | None) -> Samples:
        """Return these samples with those of another round."""
        if other is None:
            return self
        return Samples(self.seconds + other.seconds, self.cycle_s + other.cycle_s)

    @property
    def description(self) -> str:
        """How many samples there were and how far they lay apart."""
        return f"best of {len(self.seconds)} samples, middle half within {self.spread:.1%}"


def parse_samples(text: str) -> Samples:
    """Return what a kernel printed, a line ``nanoseconds nanoseconds`` per sample; raises ``ValueError``."""
    rows = [tuple(map(float, line.split())) for line in text.splitlines()]
    if not rows or any(len(row) != 2 or not all(math.isfinite(x) and x > 0 for x in row) for row in rows):
        raise ValueError("no samples")
    return Samples(tuple(row[0] * 1e-9 for row in rows), tuple(row[1] * 1e-9 for row in rows))


def round_rate(cycles: float) -> float:
    """Return how many operations start per cycle when one takes ``cycles``: what hardware can do, not less than seen.

    Units start a whole number of operations in a cycle, or one in a whole number of half cycles, and noise only makes
    them look slower: the next such number above is a rate that times computed from it stay lower bounds.
    """
    if cycles > 0.9:
        return 1 / round_cycles(cycles, 0.5)
    return float(math.ceil(1 / cycles - _CLOSE))


def round_cycles(cycles: float, step: float = 1.0) -> float:
    """Return the largest number of ``step`` cycles that is not above ``cycles`` by more than noise, at least one."""
    return max(math.floor(cycles / step + _CLOSE) * step, step)


def describe_noise(found: Sequence[tuple[str, Samples]]) -> list[str]:
    """Return which measurements were disturbed, in words."""
    return [f"{name}: middle half of the samples within {one.spread:.0%}" for name, one in found if one.spread > NOISY]
