"""Forecasts that add up: the gaps, and the regions, of a prediction are the run at every point.

Each series is fitted by itself, so what its models say about a point far away need not agree with the others. What is
known of them together does: the measured run is the sum of its gaps and of what lies below them, and of its regions.
The joint forecast changes each by as little as its own interval makes it doubtful, until the sums hold (least squares
on logarithms with one equation per whole; R. Hyndman et al., Comput. Stat. Data Anal. 55, 2011, do so for sums of time
series).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import forecasts
from advisor_scaling.collect import BELOW, OUTSIDE, REST, RUN, is_machine_gap
from advisor_scaling.study import MeasuredSeries, ScalingStudy, compute_reach, fit_study

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_scaling.engine import FittedModels
    from advisor_scaling.forecasts import Forecast

#: The model of a run is a sum of few terms, so growth that starts in one of its parts is not in it: with each doubling
#: beyond what was measured, the logarithm of the run is that much more doubtful than its model says.
HIDDEN_GROWTH: Final = 0.2
#: Logarithms of a forecast are doubtful by that much at least, and at most.
_LEAST_DOUBT: Final = 3e-3
_MOST_DOUBT: Final = 3.0
_STEPS: Final = 60
#: A step changes a forecast by that factor (e to the power of it) at most.
_LONGEST_STEP: Final = 0.5


@dataclass(frozen=True, slots=True)
class Partition:
    """A series that is the sum of others: indexes into the series of a study. A ``fixed`` whole is not changed."""

    whole: int
    parts: tuple[int, ...]
    fixed: bool


def find_partitions(study: ScalingStudy) -> tuple[Partition, ...]:
    """Return which series are sums of others: the run of its gaps, the rest of machine gaps, the run of its regions.

    None where a study has no run, or where its series are no times.
    """
    series = study.series
    at = {one: number for number, one in enumerate(series)}
    if RUN not in at:
        return ()
    gaps = [number for number, one in enumerate(series) if one.kind == "gap"]
    machine = [number for number in gaps if is_machine_gap(series[number])]
    upper = [number for number in gaps if number not in machine]
    regions = [number for number, one in enumerate(series) if one.kind == "region"]
    found = []
    if upper:
        found.append(Partition(at[RUN], (*upper, *_present(at, REST)), fixed=False))
    if machine:
        found.append(Partition(at.get(REST, at[RUN]), (*machine, *_present(at, BELOW)), fixed=REST in at))
    if regions and (gaps or OUTSIDE in at):
        found.append(Partition(at[RUN], (*regions, *_present(at, OUTSIDE)), fixed=bool(gaps)))
    return tuple(found)


def _present(at: Mapping[MeasuredSeries, int], series: MeasuredSeries) -> tuple[int, ...]:
    return (at[series],) if series in at else ()


def forecast_jointly(
    study: ScalingStudy, fits: FittedModels, targets: FloatArray, level: float = 0.8, of_run: bool = False
) -> Forecast:
    """Return value and interval of all series at ``targets`` (t, m) as ``compute_forecast``, with sums that hold.

    A part never exceeds its whole; the interval of a run is that of the sum of its parts, as doubtful as they are.
    """
    if study.selected_from is not None:
        return _forecast_selected(study, study.selected_from, targets, level, of_run)
    steady = forecasts.compute_steady_forecast(fits, targets, level, of_run)
    said = forecasts.widen_by_drift(fits, targets, steady, level)
    for each in find_partitions(study):
        doubt = np.zeros(len(targets)) if each.fixed else HIDDEN_GROWTH * _count_doublings(study, targets)
        rows = np.array([each.whole, *each.parts])
        after = _close_sum(each, forecasts.Forecast(steady.value[rows], steady.low[rows], steady.high[rows]), doubt)
        if after is not None:
            steady, said = (_set_sum(one, each, rows, after) for one in (steady, said))
    return said


def _forecast_selected(
    study: ScalingStudy, known: ScalingStudy, targets: FloatArray, level: float, of_run: bool
) -> Forecast:  # fmt: skip
    """Return the forecast of the series of a study among those that they are parts of."""
    found = forecast_jointly(known, fit_study(known), targets, level, of_run)
    rows = [known.series.index(one) for one in study.series]
    return forecasts.Forecast(found.value[rows], found.low[rows], found.high[rows])


def _count_doublings(study: ScalingStudy, targets: FloatArray) -> FloatArray:
    """Return how many doublings each target (t,) lies beyond what was measured, all parameters together."""
    return np.array([np.log2(list(compute_reach(study, target.tolist()).values())).sum() for target in targets])


def _close_sum(each: Partition, said: Forecast, doubt: FloatArray) -> FloatArray | None:
    """Return the values (1 + parts, t) of whole and parts of which the sum holds, None where the parts are nothing.

    ``doubt`` (t,) adds to that of the whole. How far a model drifts off says nothing about the direction, and is
    largest for what grows: it makes intervals wider, and is none of the doubts that are weighed here.
    """
    if not (said.value[1:].sum(axis=0) > 0.0).all():
        return None
    # by how much the logarithm of each value (n, t) is doubtful in the direction in which it must go
    sign = np.where(np.arange(len(said.value)) == 0, 1.0, -1.0)[:, None]
    falls = sign * (sign * said.value).sum(axis=0) > 0.0
    known = np.maximum(said.value, 1e-300)
    down = np.log(known / np.maximum(said.low, 1e-300))
    up = np.log(np.maximum(said.high, known) / known)
    spread = np.where(said.value > 0.0, np.clip(np.where(falls, down, up), _LEAST_DOUBT, _MOST_DOUBT), 0.0)
    spread[0] = 0.0 if each.fixed else np.hypot(spread[0], doubt)
    return _solve_sum(said.value, spread)


def _set_sum(said: Forecast, each: Partition, rows: IntArray, after: FloatArray) -> Forecast:
    """Return the forecast with other values of whole and parts, and intervals around them; zero stays zero."""
    value, low, high = said.value.copy(), said.low.copy(), said.high.copy()
    factor = np.divide(after, value[rows], out=np.ones_like(after), where=value[rows] > 0.0)
    value[rows] = after
    low[rows], high[rows] = low[rows] * factor, high[rows] * factor
    if not each.fixed:
        below, above = (np.sqrt(((end[rows[1:]] - after[1:]) ** 2).sum(axis=0)) for end in (low, high))
        low[each.whole], high[each.whole] = np.maximum(after[0] - below, 0.0), after[0] + above
    high[rows[1:]] = np.maximum(np.minimum(high[rows[1:]], high[each.whole]), after[1:])
    return forecasts.Forecast(value, low, high)


def _solve_sum(value: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the values (n, t) nearest to ``value`` of which the first is the sum of the others.

    Near is the sum of squares of the changes of logarithms over ``spread``: Gauss-Newton on the one equation, in steps
    that are not too long; what rounding leaves goes to the whole, or to the parts of a whole without doubt.
    """
    sign = np.where(np.arange(len(value)) == 0, 1.0, -1.0)[:, None]
    start = np.log(np.maximum(value, 1e-300))
    logs, weight = start.copy(), spread**2
    for _ in range(_STEPS):
        slope = sign * np.where(value > 0.0, np.exp(logs), 0.0)
        missing = slope.sum(axis=0) + (slope * (start - logs)).sum(axis=0)
        stiff = np.maximum((slope**2 * weight).sum(axis=0), 1e-300)
        step = start - weight * slope * missing / stiff - logs
        logs = logs + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if np.abs(step).max() < 1e-12:
            break
    found = np.where(value > 0.0, np.exp(logs), 0.0)
    fixed = spread[0] == 0.0
    found[0] = np.where(fixed, value[0], found[1:].sum(axis=0))
    found[1:] *= np.where(fixed, value[0] / np.maximum(found[1:].sum(axis=0), 1e-300), 1.0)
    return found
