"""What of a run is worth a picture: who works how much in which phase, how that moves, who waits for whom, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, Advice, FloatArray, IntArray, Phase, Profile
from advisor.model.reports import Axis, HeatMap, Line, Series
from advisor.model.timeline import Timeline, TimelineColumn, WaitCause

if TYPE_CHECKING:
    from advisor.model.devices import DeviceTimeline


#: Regions, phases, processors and iterations in one picture; of more, those with the most seconds or deviation.
REGIONS, PHASES, PROCESSORS, POINTS, LINES = 24, 16, 64, 400, 4
_MEASURES: Final = ("transfer_s", "io_s", "sync_s", "wait_s")
#: Rows in a picture, and cells: of more ranks neighbours are averaged, of more instances short ones are combined.
ROWS: Final = 64
_CELLS: Final = 12_000
#: So many causes of waiting are named for a rank in a phase, and so many such places in all.
_CAUSES, _PLACES = 2, 1_000


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


def build_timeline(profile: Profile) -> Timeline | None:
    """Return the timeline of a run; None where the profile does not tell when its phases were."""
    if profile.devices is not None:
        return _build_device_timeline(profile.devices.timeline)
    phases = [phase for phase in profile.phases if _has_times(phase)]
    ranks = len(profile.processors)
    if not phases or ranks < 1:
        return None
    step = -(-ranks // ROWS)
    cells = np.concatenate([_sum_kinds(phase, step) for phase in phases], axis=1)
    starts = np.concatenate([np.asarray(phase.start_s, dtype=float) for phase in phases])
    lengths = np.concatenate([np.asarray(phase.duration_s, dtype=float) for phase in phases])
    owners = np.repeat(np.arange(len(phases)), [phase.iterations for phase in phases])
    numbers = np.concatenate([np.arange(phase.iterations) for phase in phases])
    order = np.argsort(starts, kind="stable")
    order = order[np.isfinite(starts[order]) & (lengths[order] > 0)]
    if not len(order):
        return None
    starts, lengths, owners, numbers, cells = (
        starts[order] - starts[order[0]], lengths[order], owners[order], numbers[order], cells[:, order],
    )  # fmt: skip
    span_s = float((starts + lengths).max())
    groups = _group_instances(starts, lengths, span_s, max(1, _CELLS // len(cells) // 2))
    columns = tuple(
        _build_column(first, last, starts, lengths, numbers, [phases[at].name for at in {*owners[first:last]}])
        for first, last in zip(groups, [*groups[1:], len(starts)], strict=True)
    )
    names = [processor.name for processor in profile.processors]
    rows = tuple(_name_row(names, first, step) for first in range(0, ranks, step))
    causes = _find_causes(profile, phases) if step == 1 else ()
    return Timeline(rows, step, columns, np.add.reduceat(cells, groups, axis=1), span_s, causes)


def _build_device_timeline(found: DeviceTimeline | None) -> Timeline | None:
    """Return hosts, devices, streams and network over equal spans of time, by the levels of devices."""
    if found is None or found.edges_s[-1] <= found.edges_s[0]:
        return None
    starts, lengths = found.edges_s[:-1] - found.edges_s[0], np.diff(found.edges_s)
    columns = tuple(
        TimelineColumn(start, length, "the whole run", number, 1)
        for number, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True), 1)
    )
    span_s = float(found.edges_s[-1] - found.edges_s[0])
    rows = tuple(row if found.devices_per_row == 1 else f"{row} and next" for row in found.rows)
    return Timeline(rows, found.devices_per_row, columns, found.seconds, span_s, (), found.levels)


def _has_times(phase: Phase) -> bool:
    return phase.start_s is not None and phase.duration_s is not None and "wall_s" in phase.arrays


def _sum_kinds(phase: Phase, step: int) -> FloatArray:
    """Return (rows, iterations, kinds): the seconds of all regions, the mean over the ``step`` ranks of each row."""
    found = [phase.arrays["wall_s"].sum(axis=0)]
    for name in _MEASURES:
        found.append(phase.arrays[name].sum(axis=0) if name in phase.arrays else np.zeros_like(found[0]))
    found[0] = np.maximum(found[0] - sum(found[1:]), 0.0)
    every = np.stack(found, axis=-1)
    edges = np.arange(0, len(every), step)
    counts = np.diff([*edges, len(every)])
    return np.asarray(np.add.reduceat(every, edges, axis=0) / counts[:, None, None])


def _group_instances(starts: FloatArray, lengths: FloatArray, span_s: float, most: int) -> list[int]:
    """Return where each column begins: instances that together are shorter than ``span_s / most`` share one.

    There are at most twice as many columns as ``most``, as no two neighbours are both shorter.
    """
    least = span_s / most if len(starts) > 2 * most else 0.0
    groups = [0]
    for at in range(1, len(starts)):
        if starts[at] + lengths[at] - starts[groups[-1]] > least:
            groups.append(at)
    return groups


def _build_column(
    first: int, last: int, starts: FloatArray, lengths: FloatArray, numbers: IntArray, phases: Sequence[str]
) -> TimelineColumn:
    end = float((starts[first:last] + lengths[first:last]).max())
    name = phases[0] if len(phases) == 1 else f"{len(phases)} phases"
    return TimelineColumn(float(starts[first]), end - float(starts[first]), name, int(numbers[first]), last - first)


def _name_row(names: Sequence[str], first: int, step: int) -> str:
    last = min(first + step, len(names)) - 1
    return names[first] if last == first else f"{names[first]} to {names[last]}"


def _find_causes(profile: Profile, phases: Sequence[Phase]) -> tuple[WaitCause, ...]:
    """Return for whom each rank waited longest in each phase; nothing where the profile does not tell."""
    causes = profile.causes
    if causes is None:
        return ()
    known = {phase.name for phase in phases}
    waiting = causes.category == CAUSE_CATEGORIES.index("wait")
    sums: dict[tuple[int, str], dict[str, float]] = {}
    for at in np.flatnonzero(waiting & (causes.phase >= 0) & (causes.processor >= 0)):
        phase = profile.phases[int(causes.phase[at])].name
        if phase in known:
            partner, kind = int(causes.partner[at]), causes.kinds[int(causes.kind[at])]
            whom = f"{profile.processors[partner].name} ({kind})" if partner >= 0 else kind
            place = sums.setdefault((int(causes.processor[at]), phase), {})
            place[whom] = place.get(whom, 0.0) + float(causes.seconds[at])
    largest = sorted(sums.items(), key=lambda item: -max(item[1].values()))[:_PLACES]
    return tuple(
        WaitCause(row, phase, whom, seconds)
        for (row, phase), found in largest
        for whom, seconds in sorted(found.items(), key=lambda item: -item[1])[:_CAUSES]
        if seconds > 0
    )
