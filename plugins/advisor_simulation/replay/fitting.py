"""The paper's models: straight lines through replays, and through their coefficients over the number of processors.

Rodriguez, Badia, Labarta: Generation of Simple Analytical Models for Message Passing Applications, Euro-Par 2004 (seed
002), section 2. Per number of processors P: T = alpha + beta L + gamma / BW, fitted to replays at random L and BW.
Over P: alpha'(P) = alpha0' + alpha1' / P once the bursts are divided by the locality factor LF(P), the total CPU time
at P over that at the smallest P; beta'(P) and gamma'(P) linear in P. T(P, L, BW) = alpha'(P) LF(P) + beta'(P) L +
gamma'(P) / BW. A coefficient that is not distinguishable from 0 is called N.S., as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.distributions import student_t_probability
from advisor.model.errors import UsageError

if TYPE_CHECKING:
    from advisor.model.records import FloatArray

#: A coefficient is significant where its p value is at most this.
SIGNIFICANT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A fitted number, its standard error and p value (NaN where there are as many numbers as points)."""

    value: float
    error: float
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether it differs from 0; assumed where that can't be tested."""
        return math.isnan(self.p) or self.p <= SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Plane:
    """Formula (0) at one P: T = alpha + beta L + gamma / BW, with the largest and median error of the fit."""

    alpha: Coefficient
    beta: Coefficient
    gamma: Coefficient

    def predict_times(self, latency_s: FloatArray, gap: FloatArray) -> FloatArray:
        """Return T at points (latencies, seconds per byte), seconds."""
        result: FloatArray = self.alpha.value + self.beta.value * latency_s + self.gamma.value * gap
        return result


@dataclass(frozen=True, slots=True)
class CoefficientLine:
    """A coefficient over P: ``constant`` + ``slope`` times 1 / P or P.

    Over 1 / P both terms belong to the form (Amdahl's); over P one that is not significant counts as 0.
    """

    constant: Coefficient
    slope: Coefficient
    inverse: bool

    def predict_coefficient(self, processors: float) -> float:
        """Return the coefficient for a number of processors."""
        if self.inverse:
            return self.constant.value + self.slope.value / processors
        slope = self.slope.value if self.slope.is_significant else 0.0
        return (self.constant.value if self.constant.is_significant else 0.0) + slope * processors


@dataclass(frozen=True, slots=True)
class ReplayModel:
    """Formula (2): the lines of alpha', beta' and gamma', and the locality factor of each traced P."""

    alpha: CoefficientLine
    beta: CoefficientLine
    gamma: CoefficientLine
    locality: dict[int, float]

    def locality_factor(self, processors: int) -> float:
        """Return LF(P): as traced, between traced ones on a line in log P, outside that of the nearest one."""
        known = sorted(self.locality)
        x = np.log([float(each) for each in known])
        return float(np.interp(math.log(processors), x, [self.locality[each] for each in known]))

    def predict_time(self, processors: int, latency_s: float, gap: float) -> float:
        """Return T(P, L, BW), seconds; ``gap`` is 1 / BW in seconds per byte."""
        fixed = self.alpha.predict_coefficient(processors) * self.locality_factor(processors)
        return (
            fixed
            + self.beta.predict_coefficient(processors) * latency_s
            + self.gamma.predict_coefficient(processors) * gap
        )


def fit_plane(latency_s: FloatArray, gap: FloatArray, time_s: FloatArray) -> Plane:
    """Return formula (0) fitted to replays by least squares; raises ``UsageError`` for fewer than four points."""
    if len(time_s) < 4:
        raise UsageError("a fit of latency and bandwidth needs at least four points")
    found = _fit_least_squares(np.stack([np.ones(len(time_s)), latency_s, gap], axis=1), time_s)
    return Plane(*found)


def fit_line(processors: Sequence[float], values: Sequence[float], inverse: bool) -> CoefficientLine:
    """Return a coefficient over 1 / P or P; over P what is not significant is left out, and the rest fitted again.

    The one that is more in doubt is left out first.
    """
    x = np.array(processors, dtype=np.float64)
    x = 1.0 / x if inverse else x
    y = np.array(values, dtype=np.float64)
    if len(x) < 2:
        return CoefficientLine(Coefficient(float(y[0]), math.nan, math.nan), Coefficient(0.0, math.nan, 1.0), inverse)
    constant, slope = _fit_least_squares(np.stack([np.ones(len(x)), x], axis=1), y)
    if inverse:
        return CoefficientLine(constant, slope, inverse)
    if not slope.is_significant and (not constant.is_significant or slope.p >= constant.p):
        return CoefficientLine(_fit_least_squares(np.ones((len(x), 1)), y)[0], slope, inverse)
    if not constant.is_significant:
        return CoefficientLine(constant, _fit_least_squares(x[:, None], y)[0], inverse)
    return CoefficientLine(constant, slope, inverse)


def compute_locality(total_cpu_s: dict[int, float]) -> dict[int, float]:
    """Return LF(P) = total CPU time (P) / total CPU time (smallest P), section 2.2."""
    reference = total_cpu_s[min(total_cpu_s)]
    if reference <= 0:
        raise UsageError("the trace of the fewest ranks holds no computation: no locality factor")
    return {processors: total / reference for processors, total in total_cpu_s.items()}


def fit_model(planes: dict[int, Plane], factors: dict[int, float]) -> ReplayModel:
    """Return formula (2) from formula (0) of each P, fitted to replays whose bursts were divided by LF(P)."""
    counts = sorted(planes)
    return ReplayModel(
        fit_line(counts, [planes[count].alpha.value for count in counts], inverse=True),
        fit_line(counts, [planes[count].beta.value for count in counts], inverse=False),
        fit_line(counts, [planes[count].gamma.value for count in counts], inverse=False),
        factors,
    )


def compute_largest_error(predicted: FloatArray, replayed: FloatArray) -> float:
    """Return the largest relative error over the points, as the paper's table 4 gives it."""
    return float(np.abs(predicted / replayed - 1.0).max(initial=0.0))


def _fit_least_squares(design: FloatArray, values: FloatArray) -> list[Coefficient]:
    """Return coefficients with standard errors and p values of Student's t."""
    scale = np.abs(design).max(axis=0)
    scale[scale == 0] = 1.0
    scaled = design / scale
    solution, _, rank, _ = np.linalg.lstsq(scaled, values, rcond=None)
    freedom = len(values) - design.shape[1]
    if rank < design.shape[1]:
        raise UsageError("the points do not tell latency and bandwidth apart; vary both")
    if freedom < 1:
        return [Coefficient(float(value), math.nan, math.nan) for value in solution / scale]
    residual = values - scaled @ solution
    spread = float(residual @ residual) / freedom
    errors = np.sqrt(spread * np.diag(np.linalg.inv(scaled.T @ scaled)))
    return [
        Coefficient(float(value / unit), float(error / unit), _p_value(float(value), float(error), freedom))
        for value, error, unit in zip(solution, errors, scale, strict=True)
    ]


def _p_value(value: float, error: float, freedom: int) -> float:
    """Return the probability of so large a value where the true one is 0."""
    if error <= 0:
        return 0.0 if value else 1.0
    return 2.0 * student_t_probability(-abs(value) / error, freedom).item()
