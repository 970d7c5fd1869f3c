"""What other parts of gapwatch get: findings about the scale a program is meant for, models of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import AdvisorError, UsageError
from advisor.model.records import Advice, Finding, FloatArray, Gap, Profile
from advisor_scaling import (
    collect,
    dominance,
    forecasts,
    joint_forecasts,
    rehearsals,
    scale_sections,
    study,
    target_checks,
    targets,
)
from advisor_scaling.collect import RUN
from advisor_scaling.dominance import find_axis
from advisor_scaling.targets import IN_REGION, KIND, TARGET
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from advisor_scaling.forecasts import Forecast
    from advisor_scaling.study import ScalingStudy

    RunGaps = tuple[Profile, Sequence[Gap]]

#: Without one: so many times as many processors as were measured.
FURTHER: Final = 8.0
#: A gap is worth mentioning where it will take that share of the run, and several times today's.
SHARE: Final = 0.05
#: Growth counts from this share on: what grows from nothing grows without bound.
LEAST_SHARE: Final = 0.01
GROWN: Final = 2.0
_FEWEST_KERNEL_POINTS: Final = 2
#: So many times as many processors tell by which power the run changes.
_STEP: Final = 1.1


def build_findings(profile: Profile, gaps: Sequence[Gap], history: Sequence[Advice]) -> tuple[Finding, ...]:
    """Return what the run, its gaps and each gap that grows will be at the scale the program is meant for.

    Also whether the other runs predicted this one, where it is beyond them. Nothing without runs at three points or
    more. Runs of other inputs, and on other machines, than the target names
    (else than this run's) tell nothing of it; where there are too few of the target's own, the others are taken, which
    the text on the run says. Of a target that names what the runs don't have only that is said.
    """
    if not profile.has_run_time:
        return ()
    earlier = [(one.profile, one.gaps) for one in history if one.profile.program == profile.program]
    runs = [each for each in [*earlier, (profile, gaps)] if each[0].has_run_time]
    stated, settings = _read_target(profile)
    try:
        each, beware, told_by = _build_study(profile, runs, settings)
    except AdvisorError:
        return ()
    try:
        target = _find_target_point(profile, each, stated)
    except UsageError as error:
        text = f"Nothing is predicted at the target {stated}: {error}."
        return (Finding("", KIND, "run", text, {"stated": 1.0}),)
    axis = find_axis(each)
    further = target * np.where(np.arange(len(target[0])) == axis, _STEP, 1.0)
    fits = study.fit_study(each)
    seen = _TargetForecast(
        each, target[0].tolist(), joint_forecasts.forecast_jointly(each, fits, np.concatenate([target, further])),
        TARGET in profile.parameters, beware,
    )  # fmt: skip
    grown = seen.forecast_gaps(gaps)
    course = dominance.compute_course(each, fits, seen.target)
    told = {gap.today.name for gap in grown}
    small = [gap for gap in gaps if gap.name not in told and all(_has_gap(gap, its_gaps) for _, its_gaps in runs)]
    whole = replace(_build_run_finding(seen), pictures=(scale_sections.build_curves(each, course),))
    checked = target_checks.check_prediction(profile, gaps, [run for run in told_by if run[0] is not profile])
    return (
        whole,
        *([] if checked is None else [checked]),
        _build_gaps_finding(grown, small, seen, course),
        *(_build_gap_finding(gap, seen, told_by) for gap in grown if gap.is_worth_mentioning),
    )


def _has_gap(gap: Gap, others: Sequence[Gap]) -> bool:
    return any(other.name == gap.name for other in others)


def _read_target(profile: Profile) -> tuple[str, dict[str, str]]:
    """Return the point that the target of a run names, as text, and the machine and the input that it names."""
    stated = profile.parameters.get(TARGET)
    return targets.split_settings(stated) if isinstance(stated, str) else ("", {})


def _build_study(
    profile: Profile, runs: Sequence[RunGaps], settings: Mapping[str, str]
) -> tuple[ScalingStudy, tuple[str, ...], Sequence[RunGaps]]:
    """Return the study of the runs that tell of the target, what to beware of, these runs; raises ``UsageError``."""
    beware = []
    for name in targets.SETTINGS:
        wanted = settings.get(name) or _find_setting(profile, name)
        same = [run for run in runs if wanted is None or _find_setting(run[0], name) in (None, wanted)]
        try:
            _collect_study(profile.program, same)
        except UsageError:
            if name not in settings:
                raise
            beware.append(f"too few runs are known with {name} {settings[name]}; this is what the others tell")
            continue
        runs = same
    return _collect_study(profile.program, runs), tuple(beware), runs


def _find_setting(profile: Profile, name: str) -> str | None:
    """Return the machine or the input of a run, None where it says nothing of it."""
    found = profile.machine if name == "machine" else profile.parameters.get(name)
    return found if isinstance(found, str) else None


def _collect_study(program: str, runs: Sequence[RunGaps]) -> ScalingStudy:
    parameters = [collect.numeric_parameters(run) for run, _ in runs]
    if len({tuple(parameter.items()) for parameter in parameters}) < study.FEWEST_POINTS:  # of most programs; soon told
        raise UsageError("there are runs at too few points")
    observations = [
        (each, {RUN: run.actual_s} | collect.compute_gap_series(its_gaps, run.actual_s))
        for each, (run, its_gaps) in zip(parameters, runs, strict=True)
    ]
    return collect.build_study(program, observations, (), collect.NOISE_SHARE)


def _find_target_point(profile: Profile, each: ScalingStudy, stated: str) -> FloatArray:
    """Return the point (1, m) that is meant; where the target names only a machine or an input that of this run."""
    if stated:
        return study.list_target_points(each, stated)[:1]
    if TARGET in profile.parameters:
        now = collect.numeric_parameters(profile)
        return np.array([[now[name] for name in each.parameters]])
    point = each.points.max(axis=0)
    point[find_axis(each)] *= FURTHER
    return np.asarray(point[None, :])


@dataclass(frozen=True, slots=True)
class _GapForecast:
    """A gap today and at the target, where it takes ``seconds`` (80 %: ``low`` to ``high``), a ``share`` of the run."""

    today: Gap
    seconds: float
    low: float
    high: float
    share: float

    @property
    def growth(self) -> float:
        """By how much its share grows."""
        return self.share / max(self.today.share, LEAST_SHARE)

    @property
    def is_worth_mentioning(self) -> bool:
        """Whether it will be worth mentioning, and is not already."""
        return self.share >= SHARE and self.share >= GROWN * max(self.today.share, 0.0)


@dataclass(frozen=True, slots=True)
class _TargetForecast:
    """The ``forecast`` of the series of a study at the ``target`` (m,), and a step further along the processors."""

    study: ScalingStudy
    target: Sequence[float]
    forecast: Forecast
    stated: bool
    beware: tuple[str, ...] = ()

    @property
    def target_words(self) -> str:
        """The target in words."""
        return " ".join(f"{name}={value:g}" for name, value in zip(self.study.parameters, self.target, strict=True))

    def forecast_series(self, series: int, point: int = 0) -> tuple[float, float, float]:
        """Return value and interval of a series."""
        value, low, high = (
            float(end[series, point]) for end in (self.forecast.value, self.forecast.low, self.forecast.high)
        )
        return value, low, high

    def forecast_run(self, point: int = 0) -> tuple[float, float, float]:
        """Return value and interval of the run, which is the sum of its parts."""
        return self.forecast_series(self.study.series.index(RUN), point)

    @property
    def exponent(self) -> float:
        """The power of the processors by which the run changes at the target."""
        here, further = (max(self.forecast_run(point)[0], 1e-300) for point in (0, 1))
        return float(np.log(further / here) / np.log(_STEP))

    def forecast_gaps(self, gaps: Sequence[Gap]) -> list[_GapForecast]:
        """Return what the gaps of a run will be, where all runs know them."""
        today = {gap.name: gap for gap in gaps}
        known = [
            (today[each.name], self.forecast_series(at))
            for at, each in enumerate(self.study.series)
            if each.kind == "gap" and each.name in today
        ]
        whole = max(self.forecast_run()[0], 1e-300)
        return [_GapForecast(gap, *ends, share=ends[0] / whole) for gap, ends in known]


def _build_run_finding(seen: _TargetForecast) -> Finding:
    """Return what the run will take, and by which power of the processors that changes there."""
    whole, low, high = seen.forecast_run()
    name = seen.study.parameters[find_axis(seen.study)]
    text = (
        f"At {seen.target_words} the run will take {whole:.3g} s (80 %: {low:.3g} to {high:.3g} s), "
        f"and change there like {name}^{seen.exponent:.2g}."
    )
    warnings = (*study.describe_warnings(seen.study, seen.target), *seen.beware)
    text += "".join(f" Beware: {warning}." for warning in warnings)
    measures = {
        "seconds": whole, "low_s": low, "high_s": high, "speedup exponent": -seen.exponent,
        "points": float(len(seen.study.points)), "stated": float(seen.stated),
    }  # fmt: skip
    measures |= {f"target {name}": value for name, value in zip(seen.study.parameters, seen.target, strict=True)}
    return Finding("", KIND, "run", text, measures)


def _build_gaps_finding(
    grown: Sequence[_GapForecast], small: Sequence[Gap], seen: _TargetForecast, course: dominance.ForecastCourse
) -> Finding:
    """Return seconds and shares of all gaps at the target, in words of those that take some of it.

    ``first from`` is the number of processors from which on a gap is the largest up to the target. ``small`` gaps were
    measured in every run and never took enough of one to be modelled: they stay what they are.
    """
    largest = sorted((each for each in grown if each.share >= LEAST_SHARE), key=lambda each: -each.share)
    words = ", ".join(f"{each.today.name} {each.share:.0%} (now {each.today.share:.0%})" for each in largest)
    measures = {f"share of {each.today.name}": each.share for each in grown}
    measures |= {f"growth of {each.today.name}": each.growth for each in grown}
    measures |= {f"share of {gap.name}": max(gap.share, 0.0) for gap in small}
    measures |= {f"growth of {gap.name}": 1.0 for gap in small}
    for each in grown:
        name = each.today.name
        measures |= {f"seconds of {name}": each.seconds, f"low of {name}": each.low, f"high of {name}": each.high}
    text = f"Of the run at {seen.target_words} take: {words or 'no gap a per cent'}."
    overtaken = dominance.find_overtakings(seen.study, course)
    if overtaken:
        last = overtaken[-1]
        measures[f"first from {last.winner}"] = last.at
        text += f" From {course.parameter}={last.at:g} on {last.winner} is the largest gap, before it {last.loser}."
    return Finding("", KIND, "gaps", text, measures)


def _build_gap_finding(gap: _GapForecast, seen: _TargetForecast, runs: Sequence[RunGaps]) -> Finding:
    """Return what a gap will be at the target, and in which regions (measures ``seconds in REGION``)."""
    name = gap.today.name
    places = target_checks.forecast_places(name, runs, seen.target, gap.seconds)
    where = ", ".join(f"{seconds:.3g} s in {region}" for region, seconds in places.items())
    text = (
        f"Gap {name} takes {gap.today.share:.1%} of this run, but will take {gap.share:.0%} at {seen.target_words}: "
        f"{gap.seconds:.3g} s (80 %: {gap.low:.3g} to {gap.high:.3g} s){f'; {where}' if where else ''}. "
        f"Actions against {name} save little here and much there."
    )
    measures = {
        "today_s": gap.today.seconds, "seconds": gap.seconds, "low_s": gap.low, "high_s": gap.high,
        "share_today": gap.today.share, "share": gap.share,
    }  # fmt: skip
    measures |= {f"{IN_REGION}{region}": seconds for region, seconds in places.items()}
    return Finding("", KIND, name, text, measures)


def fit_kernel_model(
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
    fits = rehearsals.fit_rehearsed_models(tuple(names), np.array(points, dtype=float), array[None])

    def predict_point(point: Sequence[float]) -> tuple[float, float, float]:
        said = forecasts.compute_forecast(fits, np.array([list(point)], dtype=float))
        return float(said.value[0, 0]), float(said.low[0, 0]), float(said.high[0, 0])

    return predict_point


def processors_factor(profile: Profile, stated: str) -> float | None:
    """Return the factor from this run's processors to a ``stated`` target; None if it states none."""
    try:
        asked = targets.parse_target(targets.split_settings(stated)[0])
    except UsageError:
        return None
    meant = next((max(values) for name, values in asked.items() if PROCESSORS.fullmatch(name)), None)
    now = next(
        (value for name, value in collect.numeric_parameters(profile).items() if PROCESSORS.fullmatch(name)), None
    )
    return meant / now if meant and now else None
