"""Loops over the events of large traces, compiled by numba: order-dependent steps in a single pass.

Each gives what a function of plain numpy gives, which is named there and used for small traces and without numba.
Importing this module imports numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from advisor.support.compiling import jit
from advisor.trace.events import Kind

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int32]

_ENTER: Final = int(Kind.ENTER)
_LEAVE: Final = int(Kind.LEAVE)
_SEND: Final = int(Kind.SEND)
_RECV: Final = int(Kind.RECV)
_ISEND: Final = int(Kind.ISEND)
_ISEND_DONE: Final = int(Kind.ISEND_DONE)
_IRECV_POST: Final = int(Kind.IRECV_POST)
_IRECV: Final = int(Kind.IRECV)
_COLLECTIVE: Final = int(Kind.COLLECTIVE)
_FORK: Final = int(Kind.FORK)
_JOIN: Final = int(Kind.JOIN)

_lent: Final = jit(allocating=False, without_gil=True)
_inlined: Final = jit(allocating=False, inlined=True, without_gil=True)


@_lent
def nest_calls(
    events: tuple[IntArray, Kinds, Words, FloatArray],
    claims: Bools,
    marks: Bools,
    calls: IntArray,
    times: FloatArray,
    threaded: Bools,
    open_after: IntArray,
    told: IntArray,
) -> int:
    """Fill the columns of ``Calls`` as ``nesting._nested`` does; return how many events are ``told``.

    ``events`` are first, kind, region and time. The rows of ``calls`` are location, region, parent, enter, leave and
    anchor, those of ``times`` start and end, those of ``told`` event, kind and call. Calls of regions that ``claims``
    claim the time of their callees, and those of regions that ``marks`` are parallel regions of threads.
    """
    first, kind, region, time_s = events
    locations, regions, parent, enter, leave, anchor = calls
    call, count = 0, 0
    for location in range(len(first) - 1):
        top = -1
        for event in range(first[location], first[location + 1]):
            if kind[event] == _ENTER:
                name = region[event]
                locations[call], regions[call], parent[call] = location, name, top
                enter[call], leave[call] = event, -1
                times[0, call], times[1, call] = time_s[event], time_s[first[location + 1] - 1]
                above = anchor[top] if top >= 0 else -1
                anchor[call] = call if above < 0 and claims[name] else above
                threaded[call] = marks[name] or (top >= 0 and threaded[top])
                top = call
                call += 1
            elif kind[event] == _LEAVE and top >= 0:
                leave[top], times[1, top] = event, time_s[event]
                top = parent[top]
            elif kind[event] > _LEAVE and top >= 0:
                told[0, count], told[1, count] = event, kind[event]
                told[2, count] = anchor[top] if anchor[top] >= 0 else top
                count += 1
            open_after[event] = top
    return count


@_lent
def find_cut_points(
    columns: tuple[Kinds, Words, Words],
    edges: IntArray,
    last: int,
    tables: tuple[Bools, Bools, Bools],
    before: IntArray,
    found: IntArray,
    good: Bools,
) -> int:
    """Fill ``found`` (event, comm, sent, location) and ``good``; return how many there are.

    ``columns`` are kind, communicator and region of all events, ``edges`` delimit those of neighbouring locations. The
    last of these ends with the event ``last``, and in the first ``before`` was under way. Otherwise this is what
    ``segmentation._find_in_group`` and ``_find_in_block`` do.
    """
    kind, comm, region = columns
    full, holds, together = tables
    sent, sends, posts, teams = before
    count = 0
    for location in range(len(edges) - 1):
        if location:
            sent = sends = posts = teams = 0
        final = last if location == len(edges) - 2 else edges[location + 1] - 1
        for event in range(edges[location], edges[location + 1]):
            what = kind[event]
            if what <= _LEAVE:
                if together[region[event]]:
                    teams += 1 if what == _ENTER else -1
            elif what == _COLLECTIVE and full[comm[event]]:
                after = min(event + 1, final)
                found[0, count], found[1, count], found[2, count] = event + 2, comm[event], sent
                found[3, count] = location
                closed = sends == 0 and posts == 0 and teams == 0
                good[count] = closed and kind[after] == _LEAVE and holds[region[after]]
                count += 1
            else:
                sent += (what == _SEND) + (what == _ISEND) - (what == _RECV) - (what == _IRECV)
                sends += (what == _ISEND) - (what == _ISEND_DONE)
                posts += (what == _IRECV_POST) - (what == _IRECV)
                teams += (what == _FORK) - (what == _JOIN)
    before[0], before[1], before[2], before[3] = sent, sends, posts, teams
    return count


@_lent
def split_time_lines(
    events: tuple[IntArray, Kinds, FloatArray, IntArray],
    calls: tuple[IntArray, Bools, FloatArray],
    spans: tuple[IntArray, FloatArray, FloatArray],
    leaves_s: FloatArray,
    run: tuple[float, float],
    latest: IntArray,
    places: IntArray,
    seconds: FloatArray,
    forks: Bools,
) -> int:
    """Fill the columns of ``accounts.Pieces`` and return how many rows they have.

    ``events`` are first, kind, time and open call, ``calls`` their anchors, which are idle and their starts; ``run`` is
    when the instances begin and end, and ``latest`` (calls + 1,) holds -1. ``find_cut_points`` are the first three
    columns, and ``seconds`` the next three. Pieces of a call in one instance are one, but for its forks and joins;
    otherwise this is what ``accounts._cut_group`` does.
    """
    first, kind, time_s, opened = events
    anchor, idle, start_s = calls
    stopping, begin_s, end_s = spans
    row = 0
    for location in range(len(first) - 1):
        final = first[location + 1] - 1
        while final >= first[location] and not _is_move(kind[final]):
            final -= 1
        closer, latest[-1] = stopping[location], -1
        call, start, forking, instance = -1, begin_s[location], False, 0
        for event in range(first[location], final + 2):
            within = event <= final
            if within and not _is_move(kind[event]):
                continue
            end = time_s[event] if within else end_s[location]
            instance = find_instance(leaves_s, location, instance, start)
            forking = call >= 0 and (forking or (within and kind[event] == _JOIN))
            known = latest[call]
            if forking or known < 0 or forks[known] or places[2, known] != instance:
                places[0, row], places[1, row], places[2, row] = location, call, instance
                seconds[:, row], forks[row] = 0.0, forking
                known, latest[call] = row, row
                row += 1
            _add_seconds(seconds, known, start, end, run)
            if within:
                start, forking, call = end, kind[event] == _FORK, opened[event]
                call = anchor[call] if call >= 0 and anchor[call] >= 0 else call
                if closer >= 0 and (event == final or start >= start_s[closer]):
                    call = closer
                call = -1 if call >= 0 and idle[call] else call
    return row


@_inlined
def _is_move(kind: int) -> bool:
    """Return whether an event of this kind ends a piece."""
    return kind in (_ENTER, _LEAVE, _FORK, _JOIN)


@_inlined
def find_instance(leaves_s: FloatArray, location: int, instance: int, start: float) -> int:
    """Return the first instance from ``instance`` on that the location leaves after ``start``, looking near first."""
    step = 1
    while instance + step <= len(leaves_s) and leaves_s[instance + step - 1, location] <= start:
        instance += step
        step *= 2
    while step > 0:
        if instance + step <= len(leaves_s) and leaves_s[instance + step - 1, location] <= start:
            instance += step
        step //= 2
    return instance


@_lent
def extract_column(
    source: npt.NDArray[Any], low: IntArray, high: IntArray, first: IntArray, target: npt.NDArray[Any]
) -> None:
    """Copy what lies between ``low`` and ``high`` of each location to the end of its part of ``target``."""
    for location in range(len(low)):
        behind = first[location + 1] - high[location]
        for event in range(low[location], high[location]):
            target[behind + event] = source[event]


@_inlined
def _add_seconds(seconds: FloatArray, row: int, start: float, end: float, run: tuple[float, float]) -> None:
    """Add what lies between ``start`` and ``end``: inside the run, before and after it."""
    whole = end - start
    before = min(max(run[0] - start, 0.0), max(whole, 0.0))
    after = min(max(end - run[1], 0.0), max(whole - before, 0.0))
    seconds[0, row] += whole - before - after
    seconds[1, row] += before
    seconds[2, row] += after
