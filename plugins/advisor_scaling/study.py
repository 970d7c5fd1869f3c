"""What is modelled together: named series measured at the same points, their models, and how well those predict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.model.errors import UsageError
from advisor.support.documents import suggest_word
from advisor_scaling import equations, forecasts, rehearsals, targets
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor.model.records import FloatArray
    from advisor_scaling.engine import FittedModels
    from advisor_scaling.equations import Equation
    from advisor_scaling.forecasts import Forecast

#: So many points a target may name.
_MOST: Final = 10_000

Kind = Literal["run", "region", "gap", "rest", "count"]
#: Fewer points than this are no basis for a model of how time grows.
FEWEST_POINTS: Final = 3
#: Predictions were tested up to this multiple of the largest value measured; beyond it they come with a warning.
TESTED_REACH: Final = 16.0


@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """What one model is about: a name, its kind, and its unit (``s``, ``B`` or nothing)."""

    name: str
    kind: Kind = "run"
    unit: Literal["s", "B", ""] = "s"


@dataclass(frozen=True, slots=True)
class ScalingStudy:
    """Measured series: ``points`` (n, m) of the ``parameters``, ``values`` (k, n, repeats) with NaN for none.

    ``scale`` (k, n) is what the noise of each value is relative to. ``fixed`` holds parameters that did not change,
    ``tied`` those that changed only together with one of the parameters. ``notes`` say what was left out and why.
    Of a study that shows some series only, ``selected_from`` is the one with those that they are parts of.
    """

    program: str
    parameters: tuple[str, ...]
    points: FloatArray
    series: tuple[MeasuredSeries, ...]
    values: FloatArray
    scale: FloatArray
    fixed: Mapping[str, float]
    tied: Mapping[str, str]
    notes: tuple[str, ...] = ()
    selected_from: ScalingStudy | None = None

    @property
    def run_count(self) -> int:
        """The number of runs, repeats included."""
        return int((~np.isnan(self.values)).any(axis=0).sum())


def fit_study(study: ScalingStudy) -> FittedModels:
    """Return the models of all series of the study; that of a gap is the same whichever regions are fitted with it."""
    leading = [at for at, one in enumerate(study.series) if one.kind in ("run", "gap")]
    return rehearsals.fit_rehearsed_models(study.parameters, study.points, study.values, study.scale, leading)


def series_equation(study: ScalingStudy, fits: FittedModels, series: int) -> Equation:
    """Return the representative equation of a series."""
    return equations.build_equation(fits, series, study.series[series].name)


def select_series(study: ScalingStudy, keep: Sequence[int]) -> ScalingStudy:
    """Return the study with only the series that ``keep`` indexes."""
    chosen = list(keep)
    return replace(
        study, series=tuple(study.series[at] for at in chosen), values=study.values[chosen], scale=study.scale[chosen]
    )


def drop_point(study: ScalingStudy, point: int) -> ScalingStudy:
    """Return the study without one of its points."""
    keep = np.arange(len(study.points)) != point
    return replace(
        study, points=study.points[keep], values=study.values[:, keep], scale=study.scale[:, keep]
    )  # fmt: skip


def leave_one_out(study: ScalingStudy) -> Forecast:
    """Return what models fitted without each point say about it: values and intervals (k, n) of one more run.

    Points that leave fewer than three others are NaN.
    """
    shape = (len(study.series), len(study.points))
    ends = np.full((3, *shape), np.nan)
    if len(study.points) > FEWEST_POINTS:
        for point in range(len(study.points)):
            fits = fit_study(drop_point(study, point))
            said = forecasts.compute_forecast(fits, study.points[point : point + 1], of_run=True)
            ends[:, :, point] = said.value[:, 0], said.low[:, 0], said.high[:, 0]
    return forecasts.Forecast(*ends)


def relative_errors(fits: FittedModels, said: FloatArray) -> FloatArray:
    """Return (predicted - actual) / actual at the measured points (k, n), the measure of error of seed 001."""
    return (said - fits.averaged.mean) / fits.averaged.scale


def compute_reach(study: ScalingStudy, target: Sequence[float]) -> dict[str, float]:
    """Return for each parameter how far ``target`` (m,) lies outside what was measured: a factor, 1 inside."""
    far = {}
    for axis, name in enumerate(study.parameters):
        low, high = study.points[:, axis].min(), study.points[:, axis].max()
        far[name] = max(float(target[axis] / high), float(low / target[axis]), 1.0)
    return far


def describe_warnings(study: ScalingStudy, target: Sequence[float]) -> tuple[str, ...]:
    """Return a sentence for each parameter of a target that is further out than predictions were tested."""
    texts = []
    for axis, name in enumerate(study.parameters):
        far = compute_reach(study, target)[name]
        if far > TESTED_REACH:
            measured = study.points[:, axis]
            nearest = measured.max() if target[axis] > measured.max() else measured.min()
            texts.append(
                f"{name}={target[axis]:g} is {far:.3g} times beyond the nearest measured value ({nearest:g}); "
                f"predictions were tested up to {TESTED_REACH:g} times, so neither value nor interval can be relied on"
            )
    return tuple(texts)


def list_target_points(study: ScalingStudy, text: str) -> FloatArray:
    """Return the points (t, m) that ``text`` names; parameters that it leaves out keep their largest measured value.

    A parameter may be written in another case, and the number of processors by another of its names. ``UsageError``
    for a parameter that the runs do not have, or that never changed in them.
    """
    asked = {_resolve_name(study, name): values for name, values in targets.parse_target(text).items()}
    for name in asked:
        _check_parameter(study, name, asked[name])
    axes = [asked.get(name, (float(study.points[:, at].max()),)) for at, name in enumerate(study.parameters)]
    if math.prod(map(len, axes)) > _MOST:
        raise UsageError(f"more than {_MOST} points to predict")
    return np.array(list(product(*axes)), dtype=float)


def _resolve_name(study: ScalingStudy, name: str) -> str:
    """Return what the runs call a parameter: in another case, or another name for the number of processors."""
    known = (*study.parameters, *study.fixed, *study.tied)
    if name in known:
        return name
    alike = [one for one in known if one.lower() == name.lower()]
    if PROCESSORS.fullmatch(name):
        alike = alike or [one for one in known if PROCESSORS.fullmatch(one)]
    return alike[0] if len(alike) == 1 else name


def _check_parameter(study: ScalingStudy, name: str, values: Sequence[float]) -> None:
    if name in study.parameters or (name in study.fixed and set(values) == {study.fixed[name]}):
        return
    if name in study.fixed:
        raise UsageError(
            f"{name} was {study.fixed[name]:g} in all runs, so nothing is known about its influence; add runs with "
            f"other values of {name}"
        )
    if name in study.tied:
        raise UsageError(
            f"{name} changed only together with {study.tied[name]}, so their effects cannot be separated; leave "
            f"{name} out, or add runs that change {name} alone"
        )
    known = ", ".join(study.parameters)
    raise UsageError(f"the runs have no parameter {name!r}{suggest_word(name, study.parameters)}; they have {known}")
