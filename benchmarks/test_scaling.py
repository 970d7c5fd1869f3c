"""Models of growth against Extra-P on the same synthetic measurements in one session: right, near, and how fast.

The truth is a sum of terms from Extra-P's own search space (``tests/scaling_truth.py``); ``extra_info`` holds a row of
the table in docs/validation.md: the share of cases in which the highest power of every parameter is right to 1/4, the
relative error at the fourth point beyond in the median and the 90th percentile, milliseconds of CPU time per model,
and for gapwatch how often its 80 % interval holds.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from extrap_models import Models, by_extrap
from scaling_truth import DOUBLING, EVEN, Spread, Truth, cases

from advisor_scaling import engine, forecasts

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

FULL: Final = bool(os.environ.get("GAPWATCH_BENCHMARK_FULL"))
#: Cases by the number of parameters.
CASES: Final = {1: 1000, 2: 300, 3: 100} if FULL else {1: 300, 2: 100, 3: 40}
NAMES: Final = ("x", "y", "z")


def ours(truth: Truth) -> engine.FittedModels:
    return engine.fit_models(NAMES[: truth.points.shape[1]], truth.points, truth.values)


def right(powers: np.ndarray, truth: Truth) -> float:
    return float((np.abs(powers - truth.powers) <= 0.25 + 1e-9).all(axis=1).mean())


def described(models: Models, truth: Truth) -> dict[str, float]:
    off = np.abs(models.said[:, -1] / truth.beyond[:, -1] - 1.0)
    return {
        "powers right": round(right(models.powers, truth), 3),
        "error, median": round(float(np.median(off)), 4),
        "error, 90th percentile": round(float(np.quantile(off, 0.9)), 4),
        "CPU ms per model": round(models.ms, 3),
    }


@pytest.mark.parametrize("spread", ["even", "magnitudes"])
@pytest.mark.parametrize("axis", [DOUBLING, EVEN], ids=["4 to 64", "10 to 50"])
@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1] if FULL else [0.05])
@pytest.mark.parametrize("parameters", [1, 2, 3])
def test_against_extrap(
    benchmark: BenchmarkFixture, parameters: int, noise: float, axis: tuple[float, ...], spread: Spread
) -> None:
    truth = cases(parameters, CASES[parameters], seed=3131, noise=noise, axis=axis, spread=spread)
    fits = benchmark.pedantic(ours, (truth,), rounds=3, warmup_rounds=1)
    said = forecasts.compute_forecast(fits, truth.targets)
    powers = forecasts.central_powers(fits)
    started = time.process_time()
    ours(truth)
    ms = 1e3 * (time.process_time() - started) / len(said.value)
    held = (said.low[:, -1] <= truth.beyond[:, -1]) & (truth.beyond[:, -1] <= said.high[:, -1])
    benchmark.extra_info["gapwatch"] = described(Models(powers, said.value, ms), truth)
    benchmark.extra_info["80 % interval holds"] = round(float(held.mean()), 3)
    theirs = by_extrap(truth)
    benchmark.extra_info["Extra-P"] = described(theirs, truth)
    benchmark.extra_info["times faster"] = round(theirs.ms / ms, 1)
