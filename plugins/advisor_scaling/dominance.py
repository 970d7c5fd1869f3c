"""Which gap costs most at each number of processors, and where one overtakes another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor_scaling import joint_forecasts
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.engine import FittedModels
    from advisor_scaling.forecasts import Forecast
    from advisor_scaling.study import ScalingStudy


_MOST_LINES: Final = 8


@dataclass(frozen=True, slots=True)
class Overtaking:
    """At ``at`` of the axis the series ``winner`` becomes larger than ``loser``, which was the largest before."""

    at: float
    winner: str
    loser: str


@dataclass(frozen=True, slots=True)
class ForecastCourse:
    """Forecasts along one parameter: ``x`` (t,), the others ``fixed_values``; ``series`` (k,) indexes the study's."""

    parameter: str
    fixed_values: dict[str, float]
    x: FloatArray
    series: tuple[int, ...]
    forecast: Forecast


def find_axis(study: ScalingStudy) -> int:
    """Return the parameter along which is looked: the number of processors, else the first."""
    return next((at for at, name in enumerate(study.parameters) if PROCESSORS.fullmatch(name)), 0)


def compute_course(
    study: ScalingStudy, fits: FittedModels, target: Sequence[float], level: float = 0.8
) -> ForecastCourse:
    """Return the forecasts of all gaps (else of the run, else of the regions) up to ``target`` (m,)."""
    axis = find_axis(study)
    gaps = tuple(at for at, each in enumerate(study.series) if each.kind == "gap")
    runs = tuple(at for at, each in enumerate(study.series) if each.kind == "run")
    shown = gaps or runs[:1] or tuple(range(min(len(study.series), _MOST_LINES)))
    x = _course_steps(study.points[:, axis], float(target[axis]))
    points = np.tile(np.asarray(target, dtype=float), (len(x), 1))
    points[:, axis] = x
    held = {name: float(target[at]) for at, name in enumerate(study.parameters) if at != axis}
    return ForecastCourse(
        study.parameters[axis], held, x, shown, joint_forecasts.forecast_jointly(study, fits, points, level)
    )


def _course_steps(measured: FloatArray, target: float) -> FloatArray:
    """Return the measured values and doublings up to the target (whichever is further)."""
    values = {float(value) for value in measured} | {target}
    reach = float(measured.max())
    while reach * 2 < target:
        reach *= 2
        values.add(reach)
    return np.array(sorted(values))


def find_overtakings(study: ScalingStudy, seen: ForecastCourse) -> tuple[Overtaking, ...]:
    """Return where the largest series changes along the course, between two of its steps by where the lines cross."""
    values = seen.forecast.value[list(seen.series)]
    names = [study.series[at].name for at in seen.series]
    largest = values.argmax(axis=0)
    found = []
    for step in range(1, len(seen.x)):
        before, after = largest[step - 1], largest[step]
        if before != after:
            at = _find_crossing(seen.x[step - 1 : step + 1], values[[before, after], step - 1 : step + 1])
            found.append(Overtaking(at, names[after], names[before]))
    return tuple(found)


def _find_crossing(x: FloatArray, two: FloatArray) -> float:
    """Return where two lines through (log x, log value) cross; to the next whole number up."""
    logs = np.log(np.maximum(two, 1e-300))
    apart = logs[0] - logs[1]
    share = apart[0] / (apart[0] - apart[1]) if apart[0] != apart[1] else 1.0
    at = float(np.exp(np.log(x[0]) + np.clip(share, 0.0, 1.0) * np.log(x[1] / x[0])))
    return float(np.ceil(at - 1e-9))
