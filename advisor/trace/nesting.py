"""Call nesting: enters paired with leaves, exclusive time, enclosing calls.

Everything is one loop over the enter and leave events where that is compiled, and else one sort. After an event that
brings a location to depth d, the open call is the last one that was entered to depth d; so, grouped by location and
depth in recorded order, the open call is the latest enter of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from advisor.trace.events import Kind, Role, Trace, TraceRegion, are_kinds
from advisor.trace.locations import locations_of_events
from advisor.trace.regions import is_task_wait
from advisor.trace.unbalanced_calls import find_unbalanced_events

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

#: Roles whose time is the program's own work; all others claim the time of what they call.
WORKING_ROLES = (Role.ROOT, Role.USER, Role.LOCAL, Role.OMP_PARALLEL, Role.OMP_WORK)
#: Events looked at in one go.
GROUP_EVENTS = 1 << 17


@dataclass(frozen=True, slots=True)
class Calls:
    """All calls of a trace, in the order of their enter events.

    Columns of length n: ``location``, ``region``, ``parent`` (call or -1), ``enter`` and ``leave`` (event
    indices; leave -1 where the trace ends first), ``start_s`` and ``end_s`` (by the process's own clock),
    ``anchor`` (the outermost enclosing call, itself included, that is no work of the program; -1 within its own
    work), ``threaded`` (inside a parallel region of threads). ``open_after`` (events,) is the call that is open
    after each event, -1 when none is. ``inner_events`` are the events inside of calls that neither enter nor leave one,
    ``inner_kind`` their kinds and ``inner_call`` the calls that claim them.
    """

    location: IntArray
    region: IntArray
    parent: IntArray
    enter: IntArray
    leave: IntArray
    start_s: FloatArray
    end_s: FloatArray
    anchor: IntArray
    threaded: npt.NDArray[np.bool_]
    open_after: IntArray
    inner_events: IntArray
    inner_kind: npt.NDArray[np.uint8]
    inner_call: IntArray


def pair_calls(trace: Trace, *, compiled: bool = False) -> Calls:
    """Return the calls of ``trace``; calls that never end are closed by their location's last event.

    ``compiled`` says whether the events are gone through by a compiled loop, which needs numba.
    """
    nest = _nest_by_loop if compiled else _nest_calls
    calls = nest(trace, trace.kind)
    # The locations in which calls end with the leave of another region; a shutdown may end as it likes
    crossed = np.flatnonzero((calls.region != trace.region[calls.leave]) & (calls.leave >= 0))
    told = ~have_roles(trace, calls.region[crossed], (Role.FINALIZE,))
    crossing = np.unique(calls.location[crossed[told]])
    return nest(trace, _pass_over_events(trace, crossing)) if len(crossing) else calls


def groups_of_locations(trace: Trace) -> list[tuple[int, int]]:
    """Return ranges of locations with about ``GROUP_EVENTS`` events each, so that intermediate arrays stay small."""
    target = np.arange(GROUP_EVENTS, int(trace.first[-1]) + GROUP_EVENTS, GROUP_EVENTS)
    edges = np.unique(np.r_[0, np.searchsorted(trace.first, target), len(trace.locations)])
    edges = edges[edges <= len(trace.locations)]
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _pass_over_events(trace: Trace, crossing: IntArray) -> npt.NDArray[np.uint8]:
    """Return the kinds of all events, 0 for those to pass over so that regions nest in the given locations."""
    kind = trace.kind.copy()
    for location in crossing.tolist():
        begin, end = int(trace.first[location]), int(trace.first[location + 1])
        kind[begin + find_unbalanced_events(trace.kind[begin:end], trace.region[begin:end])] = 0
    return kind


def _nest_by_loop(trace: Trace, kind: npt.NDArray[np.uint8]) -> Calls:
    """Return what ``_nest_calls`` does, by a compiled loop."""
    from advisor.trace import compiled_loops

    role = roles_of_regions(trace)
    count, others = (int(np.count_nonzero(each)) for each in (kind == Kind.ENTER, kind > Kind.LEAVE))
    calls, times, told = (np.empty((6, count), dtype=np.int64), np.empty((2, count)),
                          np.empty((3, others), dtype=np.int64))  # fmt: skip
    opened, threaded = np.empty(len(kind), dtype=np.int64), np.empty(count, dtype=np.bool_)
    events = trace.first, kind, trace.region, trace.time_s
    inside = compiled_loops.nest_calls(
        events, ~np.isin(role, WORKING_ROLES), role == Role.OMP_PARALLEL, calls, times, threaded, opened, told
    )
    (location, region, parent, enter, leave, anchor), (start, end) = calls, times
    event, told_kind, told_call = told[:, :inside]
    told_kinds = told_kind.astype(np.uint8)
    return Calls(
        location, region, parent, enter, leave, start, end, anchor, threaded, opened, event, told_kinds, told_call
    )


def _nest_calls(trace: Trace, kind: npt.NDArray[np.uint8]) -> Calls:
    """Return how the enters and leaves among events of these kinds nest."""
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    before = 0
    for low, high in groups_of_locations(trace):
        parts.append(_nest_group(trace, kind, low, high, before))
        before += len(parts[-1][0])
    enter, leave, parent, anchor, threaded, opened = (np.concatenate(part) for part in zip(*parts, strict=True))
    location, ends = _locate_calls(trace, enter, leave)
    told = np.flatnonzero(trace.kind > Kind.LEAVE)
    told = told[opened[told] >= 0]
    above = anchor[opened[told]]
    return Calls(
        location=location,
        region=trace.region[enter].astype(np.int64),
        parent=parent,
        enter=enter,
        leave=leave,
        start_s=trace.time_s[enter],
        end_s=trace.time_s[ends],
        anchor=anchor,
        threaded=threaded,
        open_after=opened,
        inner_events=told,
        inner_kind=trace.kind[told],
        inner_call=np.where(above >= 0, above, opened[told]),
    )


def _locate_calls(trace: Trace, enter: IntArray, leave: IntArray) -> tuple[IntArray, IntArray]:
    """Return the location of each call and the event that ends it."""
    location = locations_of_events(trace, enter)
    last_event = np.maximum(trace.first[1:] - 1, trace.first[:-1])
    return location, np.where(leave >= 0, leave, last_event[location])


def _nest_group(
    trace: Trace, kinds: npt.NDArray[np.uint8], low: int, high: int, before: int
) -> tuple[npt.NDArray[Any], ...]:
    """Return of the calls of the locations from ``low`` up to ``high``, numbered from ``before``, the columns enter,
    leave, parent, anchor and threaded, and the call that is open after each event.
    """
    base, end = int(trace.first[low]), int(trace.first[high])
    location = np.repeat(np.arange(low, high), np.diff(trace.first[low : high + 1]))
    kind = kinds[base:end]
    moves = np.flatnonzero(are_kinds(kind, Kind.ENTER, Kind.LEAVE))
    entering = kind[moves] == Kind.ENTER
    opened = _open_after_moves(location[moves] - low, entering)
    above = _shift_within(opened, location[moves])
    enters, closing = moves[entering], ~entering & (above >= 0)
    leave = np.full(len(enters), -1, dtype=np.int64)
    leave[above[closing]] = moves[closing]
    parent = above[entering]
    layers = _group_by_depth(parent)
    role, region = roles_of_regions(trace), trace.region[base:end][enters]
    anchor = _find_anchors(parent, layers, ~np.isin(role, WORKING_ROLES)[region])
    return (
        enters + base,
        _renumber_from(leave, base),
        _renumber_from(parent, before),
        _renumber_from(anchor, before),
        _inherit_marks(parent, layers, (role == Role.OMP_PARALLEL)[region]),
        _renumber_from(_spread_to_events(opened, moves, location), before),
    )


def _renumber_from(numbers: IntArray, base: int) -> IntArray:
    """Return ``numbers`` counted from ``base``; -1 stays what it is."""
    return np.where(numbers >= 0, numbers + base, -1)


def update_call_times(calls: Calls, trace: Trace) -> Calls:
    """Return ``calls`` with the times that ``trace`` has now, after its clocks were aligned."""
    _, ends = _locate_calls(trace, calls.enter, calls.leave)
    return replace(calls, start_s=trace.time_s[calls.enter], end_s=trace.time_s[ends])


def find_anchor_calls(calls: Calls, call: IntArray) -> IntArray:
    """Return for each call the one that claims its time: its anchor, or itself."""
    anchor = calls.anchor[call]
    return np.where(anchor >= 0, anchor, call)


def select_recorded(calls: Calls, *kinds: Kind) -> tuple[IntArray, IntArray]:
    """Return the events of these kinds that lie in a call, and the call that claims each."""
    chosen = np.flatnonzero(are_kinds(calls.inner_kind, *kinds))
    return calls.inner_events[chosen], calls.inner_call[chosen]


class _RegionColumns(NamedTuple):
    """Of some regions the role, and which are calls in which a thread has no task to run, or makes new ones."""

    regions: tuple[TraceRegion, ...] | None
    role: IntArray
    task_wait: npt.NDArray[np.bool_]


class _Latest:
    """What was asked about last: the regions of all windows of a trace are the same."""

    columns = _RegionColumns(None, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_))


def roles_of_regions(trace: Trace) -> IntArray:
    """Return the role of every region; not to be written to."""
    return _look_up_regions(trace).role


def are_task_waits(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which regions are calls in which a thread has no task to run, or makes new ones; not to be written to."""
    return _look_up_regions(trace).task_wait


def _look_up_regions(trace: Trace) -> _RegionColumns:
    known = _Latest.columns
    if known.regions is not trace.regions:
        role = np.array([region.role for region in trace.regions] or [Role.USER], dtype=np.int64)
        waits = [is_task_wait(region.name) for region in trace.regions]
        task_wait = np.array(waits or [False], dtype=np.bool_)
        role.flags.writeable = task_wait.flags.writeable = False
        # in one step, and returned from here: other threads ask about other traces meanwhile
        known = _Latest.columns = _RegionColumns(trace.regions, role, task_wait)
    return known


def have_roles(trace: Trace, region: IntArray | npt.NDArray[np.int32], wanted: Sequence[Role]) -> npt.NDArray[np.bool_]:
    """Return which of ``region`` have one of these roles."""
    have = np.isin(roles_of_regions(trace), wanted)
    return have[region] if have.any() else np.zeros(len(region), dtype=np.bool_)


def count_previous(key: IntArray) -> IntArray:
    """Return for each element how many equal ones came before it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    place = np.arange(len(key))
    fresh = np.r_[True, np.diff(ordered) != 0][: len(key)]
    turn = np.empty(len(key), dtype=np.int64)
    turn[order] = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return turn


def _open_after_moves(location: IntArray, is_enter: npt.NDArray[np.bool_]) -> IntArray:
    """Return the open call after each enter or leave."""
    if not len(location):
        return np.zeros(0, dtype=np.int64)
    total = np.cumsum(np.where(is_enter, 1, -1))
    starts = np.flatnonzero(np.r_[True, np.diff(location) != 0])
    base = np.r_[0, total[starts[1:] - 1]]
    depth = total - np.repeat(base, np.diff(np.r_[starts, len(location)]))
    depth -= min(int(depth.min()), 0)
    key = location * (int(depth.max()) + 1) + depth
    order = np.argsort(key.astype(np.uint16) if key.max() < 2**16 else key, kind="stable")
    sorted_key, entered = key[order], is_enter[order]
    place = np.arange(len(order))
    group_start = np.maximum.accumulate(np.where(np.r_[True, np.diff(sorted_key) != 0], place, 0))
    last_enter = np.maximum.accumulate(np.where(entered, place, -1))
    number = (np.cumsum(is_enter) - 1)[order]
    opened = np.empty(len(order), dtype=np.int64)
    opened[order] = np.where(last_enter >= group_start, number[np.maximum(last_enter, 0)], -1)
    return opened


def _shift_within(values: IntArray, location: IntArray) -> IntArray:
    """Return the value of the event before, -1 for the first of a location."""
    shifted = np.r_[np.int64(-1), values[:-1]] if len(values) else values
    if len(values):
        shifted[np.r_[True, np.diff(location) != 0]] = -1
    return shifted


def _spread_to_events(opened: IntArray, moves: IntArray, location: IntArray) -> IntArray:
    """Return the open call after every event, not only after enters and leaves."""
    moved = np.zeros(len(location), dtype=np.int64)
    moved[moves] = 1
    latest = np.cumsum(moved) - 1
    known = latest >= 0
    known[known] = location[moves[latest[known]]] == location[known]
    spread = np.full(len(location), -1, dtype=np.int64)
    spread[known] = opened[latest[known]]
    return spread


def _group_by_depth(parent: IntArray) -> list[IntArray]:
    """Return the calls of each depth, outermost first; callers come before callees."""
    depth = np.zeros(len(parent), dtype=np.int64)
    layers: list[IntArray] = []
    layer = np.flatnonzero(parent < 0)
    children = np.argsort(parent, kind="stable")
    sorted_parent = parent[children]
    while len(layer):
        depth[layer] = len(layers)
        layers.append(layer)
        low = np.searchsorted(sorted_parent, layer, side="left")
        high = np.searchsorted(sorted_parent, layer, side="right")
        layer = children[_join_ranges(low, high)]
    return layers


def _join_ranges(low: IntArray, high: IntArray) -> IntArray:
    """Return the concatenation of ``arange(low[i], high[i])``."""
    length = high - low
    starts = np.repeat(low - np.r_[0, np.cumsum(length)[:-1]], length)
    return starts + np.arange(int(length.sum()))


def _find_anchors(parent: IntArray, layers: list[IntArray], claims: npt.NDArray[np.bool_]) -> IntArray:
    """Return the outermost enclosing call that claims its callees' time, -1 where none does."""
    anchor = np.full(len(parent), -1, dtype=np.int64)
    for layer in layers:
        above = np.where(parent[layer] >= 0, anchor[parent[layer]], -1)
        anchor[layer] = np.where(above >= 0, above, np.where(claims[layer], layer, -1))
    return anchor


def _inherit_marks(parent: IntArray, layers: list[IntArray], mark: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether a call or one that encloses it is marked."""
    marked = mark.copy()
    for layer in layers[1:]:
        marked[layer] |= marked[parent[layer]]
    return marked
