"""MPI_Win_fence as what it is: a meeting of all ranks of a window, which traces record as a mere region.

No rank leaves a fence before the last one has come, unless it was told that nothing precedes it. So where all ranks
pass as many fences, the n-th of each are one meeting; whether they met, the times tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.trace.events import COLUMNS, Kind, Role
from advisor.trace.locations import ranks_of_locations

if TYPE_CHECKING:
    from advisor.model.records import IntArray
    from advisor.trace.events import Trace

#: The call; also which barriers of a replay are fences.
FENCE: Final = "MPI_Win_fence"
#: The part of the fences at which nobody leaves before all have come.
MET_SHARE: Final = 0.9


def meet_at_fences(trace: Trace) -> Trace:
    """Return the trace with a collective event in each fence at which all ranks meet; as it is where they don't."""
    number = next((place for place, region in enumerate(trace.regions) if region.name == FENCE), -1)
    events = np.flatnonzero(trace.region == number) if number >= 0 else np.zeros(0, dtype=np.int64)
    enters, leaves = events[trace.kind[events] == Kind.ENTER], events[trace.kind[events] == Kind.LEAVE]
    ranks = tuple(sorted({location.rank for location in trace.locations}))
    if len(ranks) < 2 or not len(enters) or not _do_ranks_meet(trace, enters, leaves, len(ranks)):
        return trace
    members = [*trace.communicators]
    if ranks not in members:
        members.append(ranks)
    added = {"kind": Kind.COLLECTIVE, "comm": members.index(ranks), "partner": -1, "tag": -1, "size": 0, "request": 0}
    columns: dict[str, Any] = {
        name: np.insert(getattr(trace, name), leaves, added.get(name, getattr(trace, name)[leaves])) for name in COLUMNS
    }
    regions = [*trace.regions]
    regions[number] = replace(regions[number], role=Role.BARRIER)
    before = np.searchsorted(leaves, trace.first)
    return replace(trace, regions=tuple(regions), communicators=tuple(members), first=trace.first + before, **columns)


def _do_ranks_meet(trace: Trace, enters: IntArray, leaves: IntArray, ranks: int) -> bool:
    """Return whether all ranks pass as many fences, and hardly any is left before the last rank has come."""
    if len(enters) != len(leaves) or len(enters) % ranks:
        return False
    places = np.searchsorted(trace.first, enters, side="right") - 1
    rank = ranks_of_locations(trace)[places]
    if not np.array_equal(places, np.repeat(np.unique(places), len(enters) // ranks)) or len(np.unique(rank)) != ranks:
        return False
    come, gone = (trace.time_s[each].reshape(ranks, -1) for each in (enters, leaves))
    return bool((gone.min(axis=0) >= come.max(axis=0)).mean() >= MET_SHARE)
