"""What other parts of gapwatch get: findings about the scale a program is meant for, models of kernels, a fact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.errors import AdvisorError, UsageError
from advisor.model import Finding
from advisor_scaling import collect, dominance, engine, forecasts, sections, study, targets
from advisor_scaling.collect import RUN
from advisor_scaling.dominance import axis_of
from advisor_scaling.study import Series
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from advisor.model import Advice, FloatArray, Gap, Profile
    from advisor_scaling.forecasts import Forecast
    from advisor_scaling.study import Study

#: The parameter of a profile that says what scale the program is meant for, such as "P=1024 N=8192".
TARGET: Final = "target"
#: Without one: so many times as many processors as were measured.
FURTHER: Final = 8.0
#: A gap is worth mentioning where it will take that share of the run, and several times today's.
SHARE: Final = 0.05
GROWN: Final = 2.0
_FEWEST_KERNEL_POINTS: Final = 2


def findings(profile: Profile, gaps: Sequence[Gap], history: Sequence[Advice]) -> tuple[Finding, ...]:
    """Return which gaps grow into something at the scale the program is meant for; nothing without enough runs."""
    if not profile.timed:
        return ()
    earlier = [(each.profile, each.gaps) for each in history if each.profile.program == profile.program]
    runs = [each for each in [*earlier, (profile, gaps)] if each[0].timed]
    places = {(each.ranks, *each.parameters.items()) for each, _ in runs}
    if len(places) < study.FEWEST_POINTS:
        return ()
    observations = [_observation(*each) for each in runs]
    try:
        each = collect.study_of(profile.program, observations, (), collect.NOISE_SHARE)
        target = _target(profile, each)
    except AdvisorError:
        return ()
    fits = study.fit(each)
    said = forecasts.forecast(fits, target)
    whole, *others = _findings(profile, gaps, each, target[0].tolist(), said)
    drawn = sections.curves(each, dominance.course(each, fits, target[0].tolist()))
    return (replace(whole, pictures=(drawn,)), *others)


def _observation(profile: Profile, gaps: Sequence[Gap]) -> tuple[Mapping[str, float], Mapping[Series, float]]:
    values = {RUN: profile.actual_s} | {Series(gap.name, "gap"): gap.seconds for gap in gaps}
    return collect.parameters_of(profile), values


def _target(profile: Profile, each: Study) -> FloatArray:
    stated = profile.parameters.get(TARGET)
    if isinstance(stated, str):
        return targets.points(each, stated)[:1]
    point = each.points.max(axis=0)
    point[axis_of(each)] *= FURTHER
    return np.asarray(point[None, :])


def _findings(
    profile: Profile, gaps: Sequence[Gap], each: Study, target: Sequence[float], said: Forecast
) -> list[Finding]:
    """Return one finding on the run at the target, one on each gap that will matter there."""
    run = each.series.index(RUN)
    whole = float(said.value[run, 0])
    where = " ".join(f"{name}={value:g}" for name, value in zip(each.parameters, target, strict=True))
    low, high = float(said.low[run, 0]), float(said.high[run, 0])
    text = f"At {where} the run will take {whole:.3g} s (80 %: {low:.3g} to {high:.3g} s)."
    beware = study.warnings(each, target)
    text += "".join(f" Beware: {warning}." for warning in beware)
    found = [Finding("", "scaling", "run", text, {"seconds": whole, "low_s": low, "high_s": high})]
    today = {gap.name: gap for gap in gaps}
    for at, series in enumerate(each.series):
        if series.kind == "gap" and series.name in today:
            found += _of_gap(today[series.name], where, said, at, whole)
    return found


def _of_gap(gap: Gap, where: str, said: Forecast, at: int, whole: float) -> list[Finding]:
    value, low, high = (float(end[at, 0]) for end in (said.value, said.low, said.high))
    share = value / whole if whole > 0.0 else 0.0
    if share < SHARE or share < GROWN * max(gap.share, 0.0):
        return []
    text = (
        f"Gap {gap.name} takes {gap.share:.1%} of this run, but will take {share:.0%} at {where}: {value:.3g} s (80 %: "
        f"{low:.3g} to {high:.3g} s). Actions against {gap.name} win little here and much there."
    )
    measures = {
        "today_s": gap.seconds, "seconds": value, "low_s": low, "high_s": high, "share_today": gap.share, "share": share
    }  # fmt: skip
    return [Finding("", "scaling", gap.name, text, measures)]


def kernel_model(
    names: Sequence[str], points: Sequence[Sequence[float]], values: Sequence[Sequence[float]]
) -> Callable[[Sequence[float]], tuple[float, float, float]]:
    """Return a model of one kernel: from the coordinates of a point to seconds and the ends of their 80 % interval.

    ``names`` (m) of the coordinates, ``points`` (n, m), for each its repeated seconds. ``UsageError`` for fewer than
    two points.
    """
    if len(points) < _FEWEST_KERNEL_POINTS:
        raise UsageError("a model of a kernel needs it measured at two points or more, better five")
    widest = max(map(len, values))
    array = np.array([[*row, *[np.nan] * (widest - len(row))] for row in values], dtype=float)
    fits = engine.fit(tuple(names), np.array(points, dtype=float), array[None])

    def predict(point: Sequence[float]) -> tuple[float, float, float]:
        said = forecasts.forecast(fits, np.array([list(point)], dtype=float))
        return float(said.value[0, 0]), float(said.low[0, 0]), float(said.high[0, 0])

    return predict


def target_factor(profile: Profile, phase: int | None) -> float | None:
    """Return how many times as many processors the program is meant for (parameter ``target``); None where not said."""
    stated = profile.parameters.get(TARGET)
    if not isinstance(stated, str):
        return None
    try:
        asked = targets.parse(stated)
    except UsageError:
        return None
    meant = next((max(values) for name, values in asked.items() if PROCESSORS.fullmatch(name)), None)
    now = next((value for name, value in collect.parameters_of(profile).items() if PROCESSORS.fullmatch(name)), None)
    return meant / now if meant and now else None
