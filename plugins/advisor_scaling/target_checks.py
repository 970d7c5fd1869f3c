"""A run beyond all others of its study, held against what they predicted for it: held or missed, and where.

The regions of a gap at the scale that a program is meant for need not be those of today.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import AdvisorError
from advisor.model.records import Finding, FloatArray, Gap, Profile
from advisor_scaling import collect, joint_forecasts, study
from advisor_scaling.collect import OTHER, RUN
from advisor_scaling.study import MeasuredSeries, ScalingStudy
from advisor_scaling.targets import KIND

if TYPE_CHECKING:
    from advisor_scaling.forecasts import Forecast

    RunGaps = tuple[Profile, Sequence[Gap]]


#: The subject of the finding.
SUBJECT: Final = "prediction"
#: Regions with a smaller share of a gap there are not named.
NAMED_SHARE: Final = 0.1


def check_prediction(profile: Profile, gaps: Sequence[Gap], others: Sequence[RunGaps]) -> Finding | None:
    """Return what ``others``, runs of the program at other points, predicted for a run that lies beyond them.

    None where it lies among them, or where they are at too few points or leave out a parameter that it changes.
    """
    point = collect.numeric_parameters(profile)
    apart = [other for other in others if collect.numeric_parameters(other[0]) != point]
    try:
        each = collect.build_study(
            profile.program, [_observe(*one) for one in apart], (), collect.NOISE_SHARE
        ) if apart else None  # fmt: skip
    except AdvisorError:
        return None
    if each is None or not _lies_beyond(each, point, [collect.numeric_parameters(one) for one, _ in apart]):
        return None
    target = np.array([[point[name] for name in each.parameters]])
    said = joint_forecasts.forecast_jointly(each, study.fit_study(each), target, of_run=True)
    return _describe(each, target[0], said, _observe(profile, gaps)[1])


def _observe(profile: Profile, gaps: Sequence[Gap]) -> tuple[dict[str, float], dict[MeasuredSeries, float]]:
    """Return the point of a run, and the seconds of the run, its gaps and its regions there."""
    seconds = {RUN: profile.actual_s} | collect.compute_gap_series(gaps, profile.actual_s)
    return collect.numeric_parameters(profile), seconds | collect.compute_region_series(profile)


def _lies_beyond(each: ScalingStudy, point: Mapping[str, float], others: Sequence[Mapping[str, float]]) -> bool:
    """Return whether a point lies above all others in a parameter, and differs in none that they do not change."""
    if collect.find_spans([*others, point]).changing != each.parameters:
        return False
    return bool(any(point[name] > each.points[:, at].max() for at, name in enumerate(each.parameters)))


def _describe(
    each: ScalingStudy, target: FloatArray, said: Forecast, measured: Mapping[MeasuredSeries, float]
) -> Finding:  # fmt: skip
    whole = each.series.index(RUN)
    value, low, high = (float(end[whole, 0]) for end in (said.value, said.low, said.high))
    actual = measured[RUN]
    held = low <= actual <= high
    where = " ".join(f"{name}={x:g}" for name, x in zip(each.parameters, target, strict=True))
    text = (
        f"The {each.run_count} runs at other points predicted {value:.3g} s at {where} (80 %: {low:.3g} to {high:.3g} "
        f"s); measured: {actual:.3g} s, {'held' if held else 'missed'}."
    )
    measures = {"predicted_s": value, "low_s": low, "high_s": high, "measured_s": actual, "held": float(held)}
    if not held:
        for kind, words in (("region", "Region"), ("gap", "Gap")):
            worst = _find_worst(each, said, measured, kind, actual > value)
            if worst is not None:
                name = each.series[worst].name
                text += f" {words} {name} misses most: " + _compare_series(each, said, measured, worst)
                measures[f"missed by {kind} {name}"] = measured[each.series[worst]] - float(said.value[worst, 0])
        text += "".join(f" Beware: {warning}." for warning in study.describe_warnings(each, target.tolist()))
    return Finding("", KIND, SUBJECT, text, measures)


def _find_worst(
    each: ScalingStudy, said: Forecast, measured: Mapping[MeasuredSeries, float], kind: str, above: bool
) -> int | None:  # fmt: skip
    """Return the series of a kind that is most seconds off in the direction in which the run is, None for none."""
    off = {
        at: (measured[one] - float(said.value[at, 0])) * (1.0 if above else -1.0)
        for at, one in enumerate(each.series)
        if one.kind == kind and one in measured and one != OTHER
    }
    worst = max(off, key=lambda at: off[at], default=None)
    return worst if worst is not None and off[worst] > 0.0 else None


def _compare_series(
    each: ScalingStudy, said: Forecast, measured: Mapping[MeasuredSeries, float], at: int
) -> str:  # fmt: skip
    """Return what was predicted and measured of a series, and whether its own interval held."""
    value, low, high = (float(end[at, 0]) for end in (said.value, said.low, said.high))
    actual = measured[each.series[at]]
    inside = "within" if low <= actual <= high else "outside"
    return f"{actual:.3g} s, predicted {value:.3g} s ({inside} its own 80 %: {low:.3g} to {high:.3g} s)."


def forecast_places(
    name: str, runs: Sequence[tuple[Profile, Sequence[Gap]]], target: Sequence[float], seconds: float
) -> dict[str, float]:
    """Return the regions that gap ``name`` will come from at ``target`` (m,), the largest first, in seconds.

    Each region's seconds of the gap are fitted over the ``runs``, and sum up to the gap's ``seconds`` there, with those
    of regions that are not named. Nothing where the gap's regions are not known in every run.
    """
    observations = []
    for profile, gaps in runs:
        parts = _sum_regions(next((gap for gap in gaps if gap.name == name), None))
        if not parts:
            return {}
        observations.append((collect.numeric_parameters(profile), {RUN: sum(parts.values()), **parts}))
    try:
        each = collect.build_study(name, observations, (), collect.NOISE_SHARE)
        said = joint_forecasts.forecast_jointly(each, study.fit_study(each), np.array([list(target)]))
    except AdvisorError:
        return {}
    value = np.maximum(said.value[:, 0], 0.0)
    regions = {one.name: float(value[at]) for at, one in enumerate(each.series) if one.kind == "region"}
    whole = max(sum(value[at] for at, one in enumerate(each.series) if one.kind != "run"), 1e-300)
    regions.pop(OTHER.name, None)
    shares = sorted(((part / whole, region) for region, part in regions.items()), reverse=True)
    return {region: share * seconds for share, region in shares if share >= NAMED_SHARE}


def _sum_regions(gap: Gap | None) -> dict[MeasuredSeries, float]:
    """Return the seconds of each region of a gap, over all phases; what is negative counts as nothing."""
    found: dict[MeasuredSeries, float] = defaultdict(float)
    for part in gap.regions if gap else ():
        found[MeasuredSeries(part.name, "region")] += part.seconds
    return {region: max(seconds, 0.0) for region, seconds in found.items()} if any(found.values()) else {}
