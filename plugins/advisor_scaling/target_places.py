"""Where a gap will be at the scale a program is meant for: its regions there need not be those of today."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.errors import AdvisorError
from advisor_scaling import collect, joint_forecasts, study
from advisor_scaling.collect import OTHER, RUN
from advisor_scaling.study import MeasuredSeries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import Gap, Profile

#: Regions with a smaller share of a gap there are not named.
NAMED_SHARE: Final = 0.1


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
