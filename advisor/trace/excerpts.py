"""An excerpt of a long trace: parts of it, cut where all processes synchronize, one behind the other.

Nothing is in flight at a cut, so the parts need nothing of what lies between them. The calls that are open there,
functions of the program, are left at the end of a part and entered again at the begin of the next.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from advisor.trace.aligned_times import align_times
from advisor.trace.events import COLUMNS, Kind, Trace
from advisor.trace.spool import release_memory

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: What a column holds where a call is entered or left at the end of a part.
_BARE: Final = {"comm": -1, "partner": -1, "tag": 0, "size": -1, "request": 0}


def extract_parts(trace: Trace, low: IntArray, high: IntArray) -> tuple[Trace, FloatArray] | None:
    """Return the events from ``low`` to ``high`` (locations, parts) of each location, and when each part begins.

    The former are rows of what ``segmentation.find_cut_points`` returns. Times are on one clock from 0 on and go on
    from part to part as if nothing had been in between; a part (parts,) begins when the last process does. None where
    calls don't nest.
    """
    opened, open_regions = _find_open_regions(trace, low)
    left, left_regions = _find_open_regions(trace, high)
    if min(opened.min(), left.min()) < 0:
        return None  # more calls are left than were entered
    size = opened + (high - low) + left
    part = np.repeat(np.arange(size.size), size.ravel())
    place = np.arange(len(part)) - np.repeat(np.cumsum(size) - size.ravel(), size.ravel()) - opened.ravel()[part]
    entering, leaving = place < 0, place >= (high - low).ravel()[part]
    source = np.clip(low.ravel()[part] + place, low.ravel()[part] - entering, high.ravel()[part] - 1)
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        columns[name] = getattr(trace, name)[source]
        release_memory([getattr(trace, name)])
    for name, value in _BARE.items():
        columns[name][entering | leaving] = value
    columns["time_s"][entering] = trace.time_s[low - 1].ravel()[part[entering]]
    columns["kind"][entering], columns["kind"][leaving] = Kind.ENTER, Kind.LEAVE
    columns["region"][entering], columns["region"][leaving] = open_regions, _reverse_groups(left_regions, left)
    extracted = replace(trace, first=np.r_[0, np.cumsum(size.sum(axis=1))].astype(np.int64), **columns)
    # on one clock before the parts are moved: processes don't leave a synchronization at exactly one time
    time_s = align_times(extracted)
    last = np.cumsum(size).reshape(size.shape) - 1
    begun, ended = time_s[last - size + 1], time_s[last]
    moved = np.r_[0.0, np.cumsum((ended[:, :-1] - begun[:, 1:]).max(axis=0))]
    time_s = time_s + moved[part % size.shape[1]]
    for first, stop in zip(extracted.first[:-1].tolist(), extracted.first[1:].tolist(), strict=True):
        np.maximum.accumulate(time_s[first:stop], out=time_s[first:stop])  # against rounding
    return replace(extracted, time_s=time_s, one_clock=True), begun.max(axis=0) + moved


def _find_open_regions(trace: Trace, places: IntArray) -> tuple[IntArray, IntArray]:
    """Return how many calls are open before each of some events (locations, parts), and their regions, outermost first.

    The regions stand in the order of locations and parts.
    """
    depth = np.zeros_like(places)
    regions: list[IntArray] = []
    for location, (first, stop) in enumerate(zip(trace.first[:-1].tolist(), trace.first[1:].tolist(), strict=True)):
        kind = trace.kind[first:stop]
        entered = kind == Kind.ENTER
        level = np.cumsum(entered.astype(np.int8) - (kind == Kind.LEAVE), dtype=np.int32)
        at = places[location] - 1 - first
        depth[location] = level[at]
        deepest = int(depth[location].max())
        held = np.full((len(at), max(deepest, 0)), -1, dtype=np.int64)
        for number in range(deepest):
            opening = np.flatnonzero(entered & (level == number + 1))
            held[:, number] = opening[np.searchsorted(opening, at, side="right") - 1]
        mine = np.arange(held.shape[1]) < depth[location][:, None]
        regions.append(trace.region[first:stop][held[mine]].astype(np.int64))
        release_memory((trace.kind, trace.region))
    return depth, np.concatenate(regions)


def _reverse_groups(values: IntArray, size: IntArray) -> IntArray:
    """Return values in groups of these sizes with each group in reverse order."""
    stop = np.repeat(np.cumsum(size), size.ravel())
    start = np.repeat(np.cumsum(size) - size.ravel(), size.ravel())
    return cast("IntArray", values[start + stop - 1 - np.arange(len(values))])
