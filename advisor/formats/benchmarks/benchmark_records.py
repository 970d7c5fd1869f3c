"""What documents of benchmarks come down to, and the numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.support.strict_json import JsonNode

UNITS: Final = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
MOST_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class MeasuredBenchmark:
    """A benchmark: the median seconds of a call, CPU seconds (None: not known), and the spread of repetitions.

    ``spread`` is the standard deviation over the mean, or half of the range over the median of few repetitions; None
    of a single one.
    """

    name: str
    wall_s: float
    cpu_s: float | None = None
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredSuite:
    """The benchmarks of one file, and what it says of the run. ``middle`` is what a call takes: median or mean.

    ``unstated`` are benchmarks that ran, but whose time the file only gives as a power of ten, or not at all.
    """

    tool: str
    benchmarks: tuple[MeasuredBenchmark, ...]
    program: str = ""
    started: str | None = None
    host: str | None = None
    cores: int | None = None
    build: str | None = None
    failed: tuple[str, ...] = ()
    unstated: tuple[str, ...] = ()
    middle: str = "median"


def read_seconds(node: JsonNode, unit_s: float = 1.0) -> float:
    """Return the seconds of a number in units of ``unit_s``; raises ``InputError`` for what cannot be."""
    seconds = node.require_number(0.0) * unit_s
    if seconds > MOST_S:
        raise node.make_error(f"{seconds:g} s are impossible here")
    return seconds


def compute_median(values: Sequence[float]) -> float:
    """Return the median."""
    return float(np.median(values))


def compute_half_range(values: Sequence[float]) -> float | None:
    """Return half of the range over the median; None of a single value."""
    middle = compute_median(values)
    return (max(values) - min(values)) / 2 / middle if len(values) > 1 and middle > 0 else None
