"""What other parts of gapwatch get: findings about the scale a program is meant for, models of kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import AdvisorError, UsageError
from advisor.model.records import Finding
from advisor_scaling import collect, dominance, engine, forecasts, sections, study, targets
from advisor_scaling.collect import RUN
from advisor_scaling.dominance import axis_of
from advisor_scaling.names import KIND, TARGET
from advisor_scaling.study import Series
from advisor_scaling.terms import PROCESSORS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from advisor.model.records import Advice, FloatArray, Gap, Profile
    from advisor_scaling.forecasts import Forecast
    from advisor_scaling.study import Study

#: What the run takes besides all gaps: a small gap that grows is lost in the noise of the run, not in its own.
REST: Final = Series("besides the gaps", "count", "s")
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


def findings(profile: Profile, gaps: Sequence[Gap], history: Sequence[Advice]) -> tuple[Finding, ...]:
    """Return what the run, its gaps and each gap that grows will be at the scale the program is meant for.

    Nothing without runs at three points or more.
    """
    if not profile.timed:
        return ()
    earlier = [(each.profile, each.gaps) for each in history if each.profile.program == profile.program]
    observations = [_observation(*each) for each in [*earlier, (profile, gaps)] if each[0].timed]
    try:
        each = collect.study_of(profile.program, observations, (), collect.NOISE_SHARE)
        target = _target(profile, each)
    except AdvisorError:
        return ()
    axis = axis_of(each)
    further = target * np.where(np.arange(len(target[0])) == axis, _STEP, 1.0)
    fits = study.fit(each)
    seen = _Outlook(each, target[0].tolist(), forecasts.forecast(fits, np.concatenate([target, further])))
    grown = seen.gaps(gaps)
    drawn = sections.curves(each, dominance.course(each, fits, seen.target))
    whole = replace(_of_run(seen), pictures=(drawn,))
    return (whole, _of_gaps(grown, seen), *(_of_gap(gap, seen) for gap in grown if gap.matters))


def _observation(profile: Profile, gaps: Sequence[Gap]) -> tuple[Mapping[str, float], Mapping[Series, float]]:
    parts = {Series(gap.name, "gap"): gap.seconds for gap in gaps}
    return collect.parameters_of(profile), {RUN: profile.actual_s, REST: profile.actual_s - sum(parts.values())} | parts


def _target(profile: Profile, each: Study) -> FloatArray:
    stated = profile.parameters.get(TARGET)
    if isinstance(stated, str):
        return targets.points(each, stated)[:1]
    point = each.points.max(axis=0)
    point[axis_of(each)] *= FURTHER
    return np.asarray(point[None, :])


@dataclass(frozen=True, slots=True)
class _Later:
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
    def matters(self) -> bool:
        """Whether it will be worth mentioning, and is not already."""
        return self.share >= SHARE and self.share >= GROWN * max(self.today.share, 0.0)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What is ``said`` of the series of a study at the ``target`` (m,), and a step further along the processors."""

    study: Study
    target: Sequence[float]
    said: Forecast

    @property
    def where(self) -> str:
        """The target in words."""
        return " ".join(f"{name}={value:g}" for name, value in zip(self.study.parameters, self.target, strict=True))

    def at(self, series: int, point: int = 0) -> tuple[float, float, float]:
        """Return value and interval of a series."""
        value, low, high = (float(end[series, point]) for end in (self.said.value, self.said.low, self.said.high))
        return value, low, high

    def run(self, point: int = 0) -> tuple[float, float, float]:
        """Return value and interval of the run: of its own model, or of its parts where they are more together."""
        value, low, high = self.at(self.study.series.index(RUN), point)
        parts = [at for at, each in enumerate(self.study.series) if each.kind == "gap" or each == REST]
        together, _, most = (sum(ends) for ends in zip(*(self.at(at, point) for at in parts), strict=True))
        return max(value, together), low, max(high, most) if together > high else high

    @property
    def exponent(self) -> float:
        """The power of the processors by which the run changes at the target."""
        here, further = (max(self.run(point)[0], 1e-300) for point in (0, 1))
        return float(np.log(further / here) / np.log(_STEP))

    def gaps(self, gaps: Sequence[Gap]) -> list[_Later]:
        """Return what the gaps of a run will be, where all runs know them."""
        today = {gap.name: gap for gap in gaps}
        known = [
            (today[each.name], self.at(at))
            for at, each in enumerate(self.study.series)
            if each.kind == "gap" and each.name in today
        ]
        whole = max(self.run()[0], 1e-300)
        return [_Later(gap, *ends, share=ends[0] / whole) for gap, ends in known]


def _of_run(seen: _Outlook) -> Finding:
    """Return what the run will take, and by which power of the processors that changes there."""
    whole, low, high = seen.run()
    name = seen.study.parameters[axis_of(seen.study)]
    text = (
        f"At {seen.where} the run will take {whole:.3g} s (80 %: {low:.3g} to {high:.3g} s), "
        f"and change there like {name}^{seen.exponent:.2g}."
    )
    text += "".join(f" Beware: {warning}." for warning in study.warnings(seen.study, seen.target))
    points = float(len(seen.study.points))
    measures = {"seconds": whole, "low_s": low, "high_s": high, "speedup exponent": -seen.exponent, "points": points}
    return Finding("", KIND, "run", text, measures)


def _of_gaps(grown: Sequence[_Later], seen: _Outlook) -> Finding:
    """Return the shares of all gaps at the target, in words of those that take some of it."""
    largest = sorted((each for each in grown if each.share >= LEAST_SHARE), key=lambda each: -each.share)
    words = ", ".join(f"{each.today.name} {each.share:.0%} (now {each.today.share:.0%})" for each in largest)
    measures = {f"share of {each.today.name}": each.share for each in grown}
    measures |= {f"growth of {each.today.name}": each.growth for each in grown}
    return Finding("", KIND, "gaps", f"Of the run at {seen.where} take: {words or 'no gap a per cent'}.", measures)


def _of_gap(gap: _Later, seen: _Outlook) -> Finding:
    name = gap.today.name
    text = (
        f"Gap {name} takes {gap.today.share:.1%} of this run, but will take {gap.share:.0%} at {seen.where}: "
        f"{gap.seconds:.3g} s (80 %: {gap.low:.3g} to {gap.high:.3g} s). "
        f"Actions against {name} win little here and much there."
    )
    measures = {
        "today_s": gap.today.seconds, "seconds": gap.seconds, "low_s": gap.low, "high_s": gap.high,
        "share_today": gap.today.share, "share": gap.share,
    }  # fmt: skip
    return Finding("", KIND, name, text, measures)


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


def processors_factor(profile: Profile, stated: str) -> float | None:
    """Return how many times as many processors a ``stated`` target means as this run had; None where it says none."""
    try:
        asked = targets.parse(stated)
    except UsageError:
        return None
    meant = next((max(values) for name, values in asked.items() if PROCESSORS.fullmatch(name)), None)
    now = next((value for name, value in collect.parameters_of(profile).items() if PROCESSORS.fullmatch(name)), None)
    return meant / now if meant and now else None
