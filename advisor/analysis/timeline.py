"""The run over time, for a picture: what each rank did in each instance of each phase, folded to what can be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES
from advisor.model.timeline import Timeline, TimelineColumn, WaitCause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.devices import DeviceTimeline
    from advisor.model.records import FloatArray, IntArray, Phase, Profile

_MEASURES: Final = ("transfer_s", "io_s", "sync_s", "wait_s")
#: Rows in a picture, and cells: of more ranks neighbours are averaged, of more instances short ones are combined.
ROWS: Final = 64
_CELLS: Final = 12_000
#: So many causes of waiting are named for a rank in a phase, and so many such places in all.
_CAUSES, _PLACES = 2, 1_000


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
