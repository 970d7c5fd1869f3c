"""Calls in which all ranks meet, though MPI calls them no synchronization: fences, the making of communicators.

No rank leaves a fence before the last one has come, unless it was told that nothing precedes it; a communicator or a
window is agreed on by its members. Recorders tell in which communicator some of these calls are; of others they show
the call alone. There the n-th call of each rank is taken for one meeting if all ranks make as many. Whether they met,
the times tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.model.mpi_calls import CONSTRUCTORS
from advisor.trace.events import COLUMNS, Kind, Role, Trace, are_kinds
from advisor.trace.locations import ranks_of_locations
from advisor.trace.nesting import count_previous
from advisor.trace.regions import classify_region

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

#: The call; also which barriers of a replay are fences.
FENCE: Final = "MPI_Win_fence"
#: What members do together to have a communicator or a window, or to get rid of a window.
_SYNCHRONIZING: Final = frozenset({FENCE, *CONSTRUCTORS, "MPI_Win_free"})
#: The part of the calls that nobody leaves before all have come.
MET_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True)
class _Meetings:
    """The calls of one name: events of their begin and end, location, communicator (-1 unknown), and who should meet.

    ``told`` says whether the trace names the communicators; ``size`` is the number of members of each call's.
    """

    enter: IntArray
    leave: IntArray
    location: IntArray
    comm: IntArray
    size: IntArray
    told: bool


def meet_in_calls(trace: Trace) -> Trace:
    """Return the trace with the role of a synchronization, and a collective event, for calls in which all ranks meet.

    It is as it was where they don't: what makes a communicator keeps the role ``COMM_OTHER``.
    """
    for name in sorted({region.name for region in trace.regions} & _SYNCHRONIZING):
        found = _find_calls(trace, [number for number, region in enumerate(trace.regions) if region.name == name])
        meetings = _name_members(trace, found)
        if meetings is None or not _do_members_meet(trace, meetings):
            continue
        if not meetings.told:
            trace = _tell_meetings(trace, meetings)
        role = Role.BARRIER if name == FENCE else Role.ALL_TO_ALL
        regions = tuple(replace(each, role=role) if each.name == name else each for each in trace.regions)
        trace = replace(trace, regions=regions)
    return trace


def are_set_up(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which regions make or free communicators and windows: they carry no data, even where all meet."""
    found = [classify_region(region.name)[1] == Role.COMM_OTHER for region in trace.regions]
    return np.array(found, dtype=np.bool_)


def _find_calls(trace: Trace, numbers: list[int]) -> _Meetings:
    """Return the calls of some regions that came to an end, none of which is inside of another."""
    events = np.flatnonzero(np.isin(trace.region, numbers) & are_kinds(trace.kind, Kind.ENTER, Kind.LEAVE))
    place = np.searchsorted(trace.first, events, side="right") - 1
    entering = trace.kind[events] == Kind.ENTER
    ended = np.flatnonzero(entering[:-1] & ~entering[1:] & (place[:-1] == place[1:]))
    enter, leave = events[ended], events[ended + 1]
    joins = np.flatnonzero(trace.kind == Kind.COLLECTIVE)
    call = np.searchsorted(leave, joins)
    inside = np.flatnonzero(np.r_[enter, len(trace.kind)][call] < joins)
    comm = np.full(len(enter), -1, dtype=np.int64)
    comm[call[inside]] = trace.comm[joins[inside]]
    size = np.array([*map(len, trace.communicators), 0])[comm]
    return _Meetings(enter, leave, place[ended], comm, size, told=bool((comm >= 0).any()))


def _name_members(trace: Trace, calls: _Meetings) -> _Meetings | None:
    """Return the calls with their communicators: all ranks where those are not told, and all make as many calls."""
    if calls.told:
        return calls
    ranks, each = np.unique(calls.location, return_counts=True)
    if trace.ranks < 2 or len(ranks) != trace.ranks or len(np.unique(each)) != 1:
        return None
    if len(np.unique(ranks_of_locations(trace)[ranks])) != trace.ranks:
        return None
    everybody = np.full(len(calls.enter), trace.ranks)
    return replace(calls, comm=np.zeros(len(calls.enter), dtype=np.int64), size=everybody)


def _do_members_meet(trace: Trace, calls: _Meetings) -> bool:
    """Return whether hardly any call is left before the last member has come."""
    turn = count_previous((calls.comm + 1) * len(trace.locations) + calls.location)
    _, group, count = np.unique(
        (calls.comm + 1) * (int(turn.max(initial=0)) + 1) + turn, return_inverse=True, return_counts=True
    )
    come, gone = np.full(len(count), -np.inf), np.full(len(count), np.inf)
    np.maximum.at(come, group, trace.time_s[calls.enter])
    np.minimum.at(gone, group, trace.time_s[calls.leave])
    whole = (calls.comm >= 0) & (calls.size > 1) & (count[group] == calls.size)
    return bool(whole.any() and (gone >= come)[group[whole]].mean() >= MET_SHARE)


def _tell_meetings(trace: Trace, calls: _Meetings) -> Trace:
    """Return the trace with a collective event of all ranks at the end of each call."""
    ranks = tuple(sorted({location.rank for location in trace.locations}))
    members = [*trace.communicators]
    if ranks not in members:
        members.append(ranks)
    added = {"kind": Kind.COLLECTIVE, "comm": members.index(ranks), "partner": -1, "tag": -1, "size": 0, "request": 0}
    columns: dict[str, Any] = {
        name: np.insert(getattr(trace, name), calls.leave, added.get(name, getattr(trace, name)[calls.leave]))
        for name in COLUMNS
    }
    before = np.searchsorted(calls.leave, trace.first)
    return replace(trace, communicators=tuple(members), first=trace.first + before, **columns)
