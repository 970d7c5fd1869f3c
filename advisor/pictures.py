"""What of a run is worth a picture, as parts of a report: who works how much in which phase, and how that moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from advisor.reports import Axis, HeatMap, Line, Series

if TYPE_CHECKING:
    from advisor.model import FloatArray, Phase, Profile

#: Phases, processors and iterations in one picture; of more, those with the most seconds or the largest deviation.
PHASES, PROCESSORS, POINTS, LINES = 16, 64, 400, 4


def work(phase: Phase) -> FloatArray:
    """Return the seconds that are no waiting and no synchronizing, (processors, iterations)."""
    arrays = phase.arrays
    if "work_s" in arrays:
        return np.asarray(arrays["work_s"].sum(axis=0))
    total = arrays["wall_s"].sum(axis=0)
    for name in ("wait_s", "sync_s"):
        if name in arrays:
            total = total - arrays[name].sum(axis=0)
    return np.asarray(total)


def balance(profile: Profile) -> HeatMap | None:
    """Return the work of each processor over the mean of all, by phase; None for one processor or without times."""
    phases = _largest(profile)
    if len(profile.processors) < 2 or not phases:
        return None
    seconds = np.stack([work(phase).sum(axis=1) for phase in phases], axis=1)
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


def imbalance(profile: Profile) -> Series | None:
    """Return the largest work over the mean, iteration by iteration, of the largest phases that repeat themselves."""
    phases = [phase for phase in _largest(profile) if phase.iterations > 1][:LINES]
    if len(profile.processors) < 2 or not phases:
        return None
    return Series(
        "Largest work over the mean, by iteration",
        Axis("iteration"),
        Axis("largest / mean"),
        tuple(_ratios(phase) for phase in phases),
    )


def _ratios(phase: Phase) -> Line:
    """Return the imbalance of each iteration; of many iterations the worst of each stretch."""
    seconds = work(phase)
    mean, most = seconds.mean(axis=0), seconds.max(axis=0)
    ratio = np.divide(most, mean, out=np.full_like(most, np.nan), where=mean > 0)
    stretches = np.array_split(np.arange(len(ratio)), min(POINTS, len(ratio)))
    worst = [float(np.nanmax(ratio[part])) if not np.isnan(ratio[part]).all() else None for part in stretches]
    return Line(phase.name, tuple(float(part[0]) for part in stretches), tuple(worst))


def _largest(profile: Profile) -> list[Phase]:
    """Return the phases with the most work, in the order of the run."""
    if not profile.has("wall_s") and not profile.has("work_s"):
        return []
    seconds = np.array([work(phase).sum() for phase in profile.phases])
    chosen = np.sort(np.argsort(-seconds, kind="stable")[:PHASES])
    return [profile.phases[number] for number in chosen if seconds[number] > 0]
