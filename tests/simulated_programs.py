"""Programs in virtual time for tests of tuning and bisecting: noise, drift and disturbed runs, all from a seed."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from advisor.experiments.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.experiments.settings import Setting


class SimulatedProgram:
    """A program of one second whose settings take ``ratios`` times as long; it breaks under those of ``broken``.

    Runs have log-normal noise; the machine drifts by ``drift`` a run, and one run in ten takes up to twice as long.
    """

    def __init__(
        self, seed: int, ratios: Mapping[str, float], broken: Mapping[str, str] | None = None,
        noise: float = 0.02, drift: float = 0.002,
    ) -> None:  # fmt: skip
        self._random, self._ratios, self._broken = random.Random(seed), ratios, broken or {}
        self._noise, self._drift = noise, drift
        self.runs: list[str] = []
        self.varying_lines: list[int] = []

    def measure_seconds(self, ratio: float) -> float:
        """Return the seconds of one more run."""
        disturbed = 1 + self._random.random() if self._random.random() < 0.1 else 1.0
        drift = 1 + self._drift * len(self.runs)
        return ratio * drift * disturbed * math.exp(self._random.gauss(0, self._noise))

    def run_trial(self, setting: Setting, limit_s: float) -> Trial:
        """Run a setting; of several together the ratios are multiplied."""
        self.runs.append(setting.name)
        parts = setting.name.split(" + ")
        seconds = self.measure_seconds(math.prod(self._ratios.get(part, 1.0) for part in parts))
        broken = [self._broken[part] for part in parts if part in self._broken]
        failure = broken[0] if broken else "ended, too slow" if seconds > limit_s else None
        return Trial(setting.name, seconds, failure)
