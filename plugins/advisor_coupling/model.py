"""The model of one case: couplings with intervals, and what they predict, beside plain summation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor_coupling import algebra, intervals
from advisor_coupling.cases import SECONDS, Chain, CouplingCase, Metric

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_coupling.intervals import Estimate

Verdict = Literal["destructive", "constructive", "no coupling beyond noise", "too noisy to tell"]

#: A coupling this near to 1 changes nothing worth acting on, however well it is known.
TOLERANCE: Final = 0.02
#: Half of an interval may be that wide, as a share of the coupling, for "no coupling" to be said.
RESOLUTION: Final = 0.10
#: The repeats of a value may differ by that much (quartiles over median); beyond it no coupling is believed at all.
SPREAD: Final = 0.15


@dataclass(frozen=True, slots=True)
class Coupling:
    """One chain: C_S, what it means, and what it costs.

    ``excess`` is P_S minus the sum of its kernels over all passes of the loop, in the metric's unit (of a rate: the
    difference itself); positive where the kernels hurt each other. ``spread`` is the largest spread of the repeats
    that went into it.
    """

    chain: Chain
    value: Estimate
    excess: Estimate
    spread: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the application takes, predicted from chains of one length (1: plain summation)."""

    length: int
    value: Estimate
    error: Estimate | None

    @property
    def method(self) -> str:
        """How the tables of the source call it."""
        return "summation" if self.length == 1 else f"coupling: {self.length} kernels"


@dataclass(frozen=True, slots=True)
class CaseModel:
    """Everything computed from one case for one metric; ``application`` is what was measured."""

    case: CouplingCase
    metric: Metric
    alone: tuple[Estimate, ...]
    couplings: tuple[Coupling, ...]
    predictions: tuple[Prediction, ...]
    application: Estimate | None

    @property
    def noise(self) -> float:
        """Half of the interval of the summation's error: what it must exceed to mean anything."""
        error = self.predictions[0].error
        return (error.high - error.low) / 2 if error else float("nan")

    @property
    def summation_fails(self) -> bool:
        """Whether plain summation is wrong beyond noise and tolerance."""
        error = self.predictions[0].error
        return error is not None and error.has_interval and (error.low > TOLERANCE or error.high < -TOLERANCE)

    def couplings_of_length(self, length: int) -> tuple[Coupling, ...]:
        """Return the couplings of all chains of that length."""
        return tuple(coupling for coupling in self.couplings if len(coupling.chain) == length)


@dataclass(frozen=True, slots=True)
class _Resamples:
    """The medians of every series over the same resamples, (draws + 1,) each."""

    alone: FloatArray
    times: FloatArray | None
    application: FloatArray | None
    once: FloatArray | float


def build_case_model(case: CouplingCase, metric: Metric | None = None) -> CaseModel:
    """Return the model of a case; needs every kernel in isolation, and uses all chains there are."""
    metric = metric or Metric(SECONDS)
    rows = intervals.draw_rounds(intervals.count_rounds(case, metric.name))
    application, once = case.application.get(metric.name), case.once.get(metric.name)
    drawn = _Resamples(
        _stack_medians(case, metric.name, 1, rows),
        _stack_medians(case, SECONDS, 1, rows) if metric.combine == "rate" else None,
        None if application is None or not len(application) else intervals.resample_medians(application, rows),
        0.0 if once is None or not len(once) else intervals.resample_medians(once, rows),
    )
    repeats = intervals.count_fewest_repeats(case, metric.name, algebra.chain_windows(case.size, 1))
    found = [_compute_couplings(case, metric, length, drawn, rows) for length in range(2, case.size + 1)]
    whole = (
        None
        if drawn.application is None
        else intervals.estimate_interval(drawn.application, _count_repeats(case, metric.name), least=0.0)
    )
    return CaseModel(
        case,
        metric,
        tuple(intervals.estimate_interval(drawn.alone[:, index], repeats, least=0.0) for index in range(case.size)),
        tuple(coupling for couplings in found for coupling in couplings),
        tuple(
            _compute_prediction(case, metric, length, drawn, rows)
            for length in (1, *case.measured_lengths(metric.name))
        ),
        whole,
    )


def _count_repeats(case: CouplingCase, metric: str) -> int:
    return int(np.isfinite(case.application[metric]).sum())


def _stack_medians(case: CouplingCase, metric: str, length: int, rows: IntArray) -> FloatArray:
    """Return (draws + 1, chains): the medians of all chains of that length; NaN for a chain without samples."""
    chains = algebra.chain_windows(case.size, length)
    series = [case.chain_samples(metric, chain) for chain in chains]
    nothing = np.full(len(rows), np.nan)
    return np.stack([nothing if one is None else intervals.resample_medians(one, rows) for one in series], axis=-1)


def _compute_couplings(
    case: CouplingCase, metric: Metric, length: int, drawn: _Resamples, rows: IntArray
) -> list[Coupling]:
    member = algebra.build_membership(case.size, length)
    together = _stack_medians(case, metric.name, length, rows)
    plain = algebra.compute_expected(drawn.alone, member, drawn.times)
    passes = case.loop_count if metric.combine == "sum" else 1
    found = []
    for row, chain in enumerate(algebra.chain_windows(case.size, length)):
        if case.chain_samples(metric.name, chain) is None:
            continue
        repeats = intervals.count_fewest_repeats(case, metric.name, (chain, *((index,) for index in chain)))
        value = intervals.estimate_interval(together[:, row] / plain[:, row], repeats, least=0.0)
        excess = intervals.estimate_interval(passes * (together[:, row] - plain[:, row]), repeats)
        spread = max(_compute_spread(case, metric.name, one) for one in (chain, *((index,) for index in chain)))
        found.append(Coupling(chain, value, excess, spread, judge_coupling(value, spread, metric)))
    return found


def _compute_spread(case: CouplingCase, metric: str, chain: Chain) -> float:
    """Return the distance of the quartiles over the median of a chain's repeats; of few repeats their whole range."""
    series = case.samples[metric][chain]
    known = series[np.isfinite(series)]
    quartiles = (0.25, 0.75) if len(known) >= 2 * intervals.FEWEST else (0.0, 1.0)
    low, high = np.quantile(known, quartiles)
    middle = abs(float(np.median(known)))
    return float(high - low) / middle if middle else 0.0


def judge_coupling(value: Estimate, spread: float, metric: Metric) -> Verdict:
    """Return what a coupling means; nothing is claimed inside the noise, or where the repeats differ widely."""
    if not value.has_interval or spread > SPREAD:
        return "too noisy to tell"
    if value.low > 1 + TOLERANCE:
        return "destructive" if metric.combine == "sum" else "constructive"
    if value.high < 1 - TOLERANCE:
        return "constructive" if metric.combine == "sum" else "destructive"
    return "no coupling beyond noise" if value.half_width <= RESOLUTION else "too noisy to tell"


def _compute_prediction(
    case: CouplingCase, metric: Metric, length: int, drawn: _Resamples, rows: IntArray
) -> Prediction:
    coefficient = _compute_coefficients(case, metric, length, drawn, rows)
    once = algebra.predict_value(coefficient, drawn.alone, drawn.times)
    total = drawn.once + case.loop_count * once if metric.combine == "sum" else once
    chains = (*algebra.chain_windows(case.size, 1), *algebra.chain_windows(case.size, length))
    repeats = intervals.count_fewest_repeats(case, metric.name, chains)
    error = None
    if drawn.application is not None:
        runs = min(repeats, _count_repeats(case, metric.name))
        error = intervals.estimate_interval(algebra.relative_error(total, drawn.application), runs, least=-1.0)
    return Prediction(length, intervals.estimate_interval(total, repeats, least=0.0), error)


def _compute_coefficients(
    case: CouplingCase, metric: Metric, length: int, drawn: _Resamples, rows: IntArray
) -> FloatArray:
    if length == 1:
        return np.ones_like(drawn.alone)
    member = algebra.build_membership(case.size, length)
    together = _stack_medians(case, metric.name, length, rows)
    times = together if drawn.times is None else _stack_medians(case, SECONDS, length, rows)
    return algebra.compute_coefficients(
        algebra.compute_couplings(drawn.alone, together, member, drawn.times), times, member
    )
