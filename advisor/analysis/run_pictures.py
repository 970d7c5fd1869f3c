"""What of a run is worth a picture: who works how much in which phase, how that moves, who waits for whom, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.analysis.timeline import build_timeline
from advisor.model.records import CAUSE_CATEGORIES
from advisor.model.reports import Axis, HeatMap, Line, Series

if TYPE_CHECKING:
    from advisor.model.records import Advice, FloatArray, IntArray, Phase, Profile

#: Regions, phases, processors and iterations in one picture; of more, those with the most seconds or deviation.
REGIONS, PHASES, PROCESSORS, POINTS, LINES = 24, 16, 64, 400, 4


def compute_work(phase: Phase) -> FloatArray:
    """Return the seconds that are no waiting and no synchronizing, (processors, iterations)."""
    arrays = phase.arrays
    if "work_s" in arrays:
        return np.asarray(arrays["work_s"].sum(axis=0))
    total = arrays["wall_s"].sum(axis=0)
    for name in ("wait_s", "sync_s"):
        if name in arrays:
            total = total - arrays[name].sum(axis=0)
    return np.asarray(total)


def attach_pictures(advice: Advice) -> Advice:
    """Return the advice with what there is to see of its profile's arrays, which the history does not keep."""
    profile = advice.profile
    drawn = (
        build_balance_map(profile), build_imbalance_series(profile), build_region_map(profile), build_wait_map(profile),
    )  # fmt: skip
    pictures = tuple(part for part in drawn if part is not None)
    return replace(advice, timeline=build_timeline(profile), pictures=pictures)


def build_balance_map(profile: Profile) -> HeatMap | None:
    """Return the work of each processor over the mean of all, by phase; None for one processor or without times."""
    phases = _select_largest_phases(profile)
    if len(profile.processors) < 2 or not phases:
        return None
    seconds = np.stack([compute_work(phase).sum(axis=1) for phase in phases], axis=1)
    mean = seconds.mean(axis=0)
    ratio = np.divide(seconds, mean, out=np.full_like(seconds, np.nan), where=mean > 0)
    order = np.argsort(-np.nanmax(np.abs(np.nan_to_num(ratio, nan=1.0) - 1), axis=1), kind="stable")
    shown = np.sort(order[:PROCESSORS])
    title = "Work over the mean of all processors"
    if len(shown) < len(profile.processors):
        title += f": the {len(shown)} of {len(profile.processors)} that deviate most"
    return HeatMap(
        title,
        "",
        tuple(profile.processors[number].name for number in shown),
        tuple(phase.name for phase in phases),
        tuple(tuple(None if np.isnan(cell) else float(cell) for cell in ratio[number]) for number in shown),
        neutral=1.0,
    )


def build_imbalance_series(profile: Profile) -> Series | None:
    """Return the largest work over the mean, iteration by iteration, of the largest phases that repeat themselves."""
    phases = [phase for phase in _select_largest_phases(profile) if phase.iterations > 1][:LINES]
    if len(profile.processors) < 2 or not phases:
        return None
    return Series(
        "Largest work over the mean, by iteration",
        Axis("iteration"),
        Axis("largest / mean"),
        tuple(_compute_ratios(phase) for phase in phases),
    )


def _compute_ratios(phase: Phase) -> Line:
    """Return the imbalance of each iteration; of many iterations the worst of each stretch."""
    seconds = compute_work(phase)
    mean, most = seconds.mean(axis=0), seconds.max(axis=0)
    ratio = np.divide(most, mean, out=np.full_like(most, np.nan), where=mean > 0)
    stretches = np.array_split(np.arange(len(ratio)), min(POINTS, len(ratio)))
    worst = [float(np.nanmax(ratio[part])) if not np.isnan(ratio[part]).all() else None for part in stretches]
    return Line(phase.name, tuple(float(part[0]) for part in stretches), tuple(worst))


def _select_largest_phases(profile: Profile) -> list[Phase]:
    """Return the phases with the most work, in the order of the run."""
    if not profile.has_measure("wall_s") and not profile.has_measure("work_s"):
        return []
    seconds = np.array([compute_work(phase).sum() for phase in profile.phases])
    chosen = np.sort(np.argsort(-seconds, kind="stable")[:PHASES])
    return [profile.phases[number] for number in chosen if seconds[number] > 0]


def build_region_map(profile: Profile) -> HeatMap | None:
    """Return the own seconds of each processor in the largest regions; None for one of either, or without times."""
    processors = len(profile.processors)
    if processors < 2 or not profile.has_measure("wall_s"):
        return None
    seconds = profile.sum_by_region("wall_s")
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
    waiting, partner, seconds = causes.processor[named], causes.partner[named], causes.seconds[named]
    of_each = np.bincount(waiting, seconds, processors) + np.bincount(partner, seconds, processors)
    shown = np.sort(np.argsort(-of_each, kind="stable")[:PROCESSORS])
    row = np.full(processors, -1)
    row[shown] = np.arange(len(shown))
    both = (row[waiting] >= 0) & (row[partner] >= 0)
    cells = np.zeros((len(shown), len(shown)))
    np.add.at(cells, (row[waiting[both]], row[partner[both]]), seconds[both])
    title = "Waiting: who (rows) waits for whom (columns)"
    if len(shown) < processors:
        title += f"; the {len(shown)} of {processors} with the most seconds"
    names = tuple(profile.processors[at].name for at in shown)
    return HeatMap(title, "s", names, names, tuple(tuple(map(float, row)) for row in cells))


def _select_deviating(seconds: FloatArray) -> IntArray:
    """Return the processors whose seconds differ most from the mean of all, in their order."""
    distance = np.abs(seconds - seconds.mean(axis=1, keepdims=True)).sum(axis=0)
    return np.sort(np.argsort(-distance, kind="stable")[:PROCESSORS])
