"""Pictures of ranks against regions, and of ranks against those that they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES
from advisor.model.reports import HeatMap

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray, Profile

#: Regions and processors in one picture: those with the most seconds, and those that deviate most.
REGIONS: Final = 24
PROCESSORS: Final = 64


def build_region_map(profile: Profile) -> HeatMap | None:
    """Return the own seconds of each processor in the largest regions; None for one of either, or without times."""
    processors = len(profile.processors)
    if processors < 2 or not profile.has_measure("wall_s"):
        return None
    seconds = np.zeros((len(profile.regions), processors))
    for phase in profile.phases:
        if "wall_s" in phase.arrays:
            np.add.at(seconds, phase.regions, phase.arrays["wall_s"].sum(axis=2))
    order = np.argsort(-seconds.sum(axis=1), kind="stable")[:REGIONS]
    chosen = order[seconds[order].sum(axis=1) > 0]
    if len(chosen) < 2:
        return None
    shown = _select_deviating(seconds[chosen])
    title = "Seconds in regions, by processor"
    if len(shown) < processors:
        title += f": the {len(shown)} of {processors} that deviate most"
    names = tuple(profile.regions[number].name for number in chosen)
    cells = tuple(tuple(map(float, row)) for row in seconds[np.ix_(chosen, shown)])
    return HeatMap(title, "s", names, tuple(profile.processors[at].name for at in shown), cells)


def build_wait_map(profile: Profile) -> HeatMap | None:
    """Return for whom each processor waits how long; None where no wait has a partner."""
    causes, processors = profile.causes, len(profile.processors)
    if causes is None or processors < 2:
        return None
    named = (causes.category == CAUSE_CATEGORIES.index("wait")) & (causes.partner >= 0) & (causes.processor >= 0)
    if not named.any():
        return None
    seconds = np.zeros((processors, processors))
    np.add.at(seconds, (causes.processor[named], causes.partner[named]), causes.seconds[named])
    shown = np.sort(np.argsort(-(seconds.sum(axis=0) + seconds.sum(axis=1)), kind="stable")[:PROCESSORS])
    title = "Waiting: who (rows) waits for whom (columns)"
    if len(shown) < processors:
        title += f"; the {len(shown)} of {processors} with the most seconds"
    names = tuple(profile.processors[at].name for at in shown)
    return HeatMap(title, "s", names, names, tuple(tuple(map(float, row)) for row in seconds[np.ix_(shown, shown)]))


def _select_deviating(seconds: FloatArray) -> IntArray:
    """Return the processors whose seconds differ most from the mean of all, in their order."""
    distance = np.abs(seconds - seconds.mean(axis=1, keepdims=True)).sum(axis=0)
    return np.sort(np.argsort(-distance, kind="stable")[:PROCESSORS])
