"""Partition of every processor's time: each second lies in one region of one phase instance, or outside.

The time line of a location is cut at its enters, leaves, forks and joins. Each piece belongs to the call that claims
it; what lies before the first or after the last instance, in no region, or in the measurement system is outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import Kind, Role, Trace, are_kinds
from advisor.trace.locations import are_first_threads
from advisor.trace.nesting import Calls, find_anchor_calls, groups_of_locations, have_roles, roles_of_regions
from advisor.trace.phases import RunDivision, instances_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray

#: Kinds of events that end a piece.
_MOVES = (Kind.ENTER, Kind.LEAVE, Kind.FORK, Kind.JOIN)
#: The call in which each location waits for the end of the run (-1: none), and when its part begins and ends.
_Spans = tuple["IntArray", "FloatArray", "FloatArray"]


@dataclass(frozen=True, slots=True)
class TimePieces:
    """Pieces of the locations' time lines, columns of one length.

    ``location``, ``call`` (the call that claims the piece, -1 none), ``instance``, ``seconds`` (inside the instances),
    ``before_s`` and ``after_s`` (outside them), ``forking`` (starting or ending a team of threads).
    """

    location: IntArray
    call: IntArray
    instance: IntArray
    seconds: FloatArray
    before_s: FloatArray
    after_s: FloatArray
    forking: npt.NDArray[np.bool_]


def extend_shutdown_calls(calls: Calls, stopping: IntArray, end_s: float) -> Calls:
    """Return ``calls`` in which the call that shuts a process down lasts until the last process does so.

    A tracer may stop at the shutdown's begin, or record its end before it has begun; the process is still there,
    waiting for the others.
    """
    closers = stopping[stopping >= 0]
    end = calls.end_s.copy()
    end[closers] = np.maximum(end[closers], end_s)
    return replace(calls, end_s=end)


def split_time_lines(
    trace: Trace, calls: Calls, division: RunDivision, spans: _Spans, *, compiled: bool = False
) -> TimePieces:
    """Return the pieces of all time lines; ``compiled`` says whether a compiled loop goes along them.

    ``spans`` (locations,) are the calls in which processes wait for the end of the run, -1 where they do not, and when
    each location's part of the trace begins and ends, in seconds.
    """
    if compiled:
        return _split_by_loop(trace, calls, division, spans)
    parts = [_split_group(trace, calls, division, spans, *group) for group in groups_of_locations(trace)]
    return TimePieces(*(np.concatenate([getattr(part, name) for part in parts]) for name in TimePieces.__slots__))


def _split_by_loop(trace: Trace, calls: Calls, division: RunDivision, spans: _Spans) -> TimePieces:
    """Return the pieces of all time lines, those of a call in one instance as one but for its forks and joins."""
    from advisor.trace import compiled_loops

    worker = ~are_first_threads(trace)[calls.location]
    idle = worker & have_roles(trace, calls.region, (Role.ROOT,))
    room = int(np.count_nonzero(are_kinds(trace.kind, *_MOVES))) + len(trace.locations)
    places, seconds = np.empty((3, room), dtype=np.int64), np.empty((3, room))
    forking, latest = np.empty(room, dtype=np.bool_), np.full(len(idle) + 1, -1, dtype=np.int64)
    events = trace.first, trace.kind, trace.time_s, calls.open_after
    run = float(division.edges_s[0]), float(division.edges_s[-1])
    count = compiled_loops.split_time_lines(
        events, (calls.anchor, idle, calls.start_s), spans, division.leaves_s, run, latest, places, seconds, forking
    )
    location, call, instance = places[:, :count]
    inside, before, after = seconds[:, :count]
    return TimePieces(location, call, instance, inside, before, after, forking[:count])


def _split_group(trace: Trace, calls: Calls, division: RunDivision, spans: _Spans, low: int, high: int) -> TimePieces:
    """Return the pieces of the locations from ``low`` up to ``high``."""
    stopping, begin_s, end_s = spans
    base, finish = int(trace.first[low]), int(trace.first[high])
    everywhere = np.arange(low, high)
    location = np.repeat(everywhere, np.diff(trace.first[low : high + 1]))
    kind = trace.kind[base:finish]
    moves = np.flatnonzero(are_kinds(kind, *_MOVES))
    where, start, kind = location[moves], trace.time_s[base:finish][moves], kind[moves]
    last = np.r_[np.diff(where) != 0, True][: len(moves)]
    end = np.where(last, end_s[where], np.r_[start[1:], 0.0][: len(moves)])
    call = calls.open_after[base:finish][moves]
    call = np.where(call >= 0, find_anchor_calls(calls, np.maximum(call, 0)), -1)
    closer = stopping[where]
    call = np.where((closer >= 0) & (last | (start >= calls.start_s[closer])), closer, call)
    idle = ~are_first_threads(trace)[where] & (
        np.r_[roles_of_regions(trace)[calls.region], Role.USER][call] == Role.ROOT
    )
    call = np.where(idle, -1, call)
    joined = np.r_[kind[1:] == Kind.JOIN, False][: len(moves)] & ~last
    forking = ((kind == Kind.FORK) | joined) & (call >= 0)
    first_move = end_s[low:high].copy()
    fresh = np.r_[True, np.diff(where) != 0][: len(moves)]
    first_move[where[fresh] - low] = start[fresh]
    return _clip_to_run(
        division,
        np.r_[where, everywhere],
        np.r_[call, np.full(high - low, -1)],
        np.r_[start, begin_s[low:high]],
        np.r_[end, first_move],
        np.r_[forking, np.zeros(high - low, dtype=bool)],
    )


def _clip_to_run(
    division: RunDivision,
    location: IntArray,
    call: IntArray,
    start: FloatArray,
    end: FloatArray,
    forking: npt.NDArray[np.bool_],
) -> TimePieces:
    """Return the pieces, split into what lies inside the instances and what lies before and after them."""
    begin, finish = division.edges_s[0], division.edges_s[-1]
    whole = end - start
    before = np.clip(begin - start, 0.0, np.maximum(whole, 0.0))
    after = np.clip(end - finish, 0.0, np.maximum(whole - before, 0.0))
    instance = instances_at(division.leaves_s, location, start)
    return TimePieces(location, call, instance, whole - before - after, before, after, forking)
