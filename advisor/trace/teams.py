"""Thread teams: the parallel region of each thread, its master, and the last thread to finish."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from advisor.support.grouping import sum_by_group
from advisor.trace.events import Kind, Role, Trace
from advisor.trace.locations import are_first_threads, locations_of_events, ranks_of_locations
from advisor.trace.nesting import Calls, count_previous, have_roles

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

TEAM_ROLES = (Role.OMP_PARALLEL, Role.OMP_WORK)


@dataclass(frozen=True, slots=True)
class ThreadTeams:
    """Parallel regions, numbered over all processes.

    ``region_of`` gives the parallel region of each call that is the outermost of its thread's part in one, -1 for
    all other calls. ``last_end_s`` is when the last thread of each region ends its part. ``barrier`` holds the calls
    of barriers that several threads share, grouped by ``first`` (barriers + 1,).
    """

    region_of: IntArray
    last_end_s: FloatArray
    barrier: IntArray
    first: IntArray


def find_teams(trace: Trace, calls: Calls) -> ThreadTeams:
    """Return the teams; parts of one process belong together by the time at which the first thread forks."""
    part = _find_team_parts(trace, calls)
    region_of = np.full(len(calls.region), -1, dtype=np.int64)
    region_of[part] = _number_regions(trace, calls, part)
    last_end = np.full(int(region_of.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(last_end, region_of[part], calls.end_s[part])
    return ThreadTeams(region_of, last_end, *_group_barriers(trace, calls, region_of))


def assign_team_callers(trace: Trace, calls: Calls, teams: ThreadTeams) -> Calls:
    """Return ``calls`` in which the parts of all threads have the caller that the first thread's part has."""
    first_thread = are_first_threads(trace)[calls.location]
    part = np.flatnonzero(teams.region_of >= 0)
    caller = np.full(len(teams.last_end_s), -1, dtype=np.int64)
    started = part[first_thread[part]]
    caller[teams.region_of[started]] = calls.parent[started]
    parent = calls.parent.copy()
    workers = part[~first_thread[part]]
    parent[workers] = caller[teams.region_of[workers]]
    return replace(calls, parent=parent)


@dataclass(frozen=True, slots=True)
class JoinWaits:
    """Seconds that each ``call`` waited, from ``moment_s`` on, for a team that it started."""

    call: IntArray
    moment_s: FloatArray
    seconds: FloatArray


def measure_join_waits(trace: Trace, calls: Calls, teams: ThreadTeams) -> JoinWaits:
    """Return how long calls waited for their threads: until the last one has ended its part, at most until the join.

    A call also waits from the moment at which the first thread of its team begins until it begins its own part: the
    team has been started, and what it lacks is a core.
    """
    own = np.flatnonzero((teams.region_of >= 0) & are_first_threads(trace)[calls.location] & (calls.parent >= 0))
    joins = np.flatnonzero(trace.kind == Kind.JOIN)
    location = np.searchsorted(trace.first, joins, side="right") - 1
    late = _find_next_times(location, trace.time_s[joins], calls.location[own], calls.end_s[own])
    team = teams.region_of[own]
    until = np.minimum(teams.last_end_s[team], late)
    begun = np.minimum(_first_begin_times(calls, teams)[team], calls.start_s[own])
    return JoinWaits(
        call=np.r_[calls.parent[own], calls.parent[own]],
        moment_s=np.r_[calls.end_s[own], begun],
        seconds=np.r_[np.clip(until - calls.end_s[own], 0.0, None), calls.start_s[own] - begun],
    )


def sum_idle_ends(trace: Trace, calls: Calls, teams: ThreadTeams, row_of_call: IntArray, rows: int) -> FloatArray:
    """Return for how long threads had ended their parts before the last of their teams did, (rows, locations).

    Of first threads it is nothing: they wait in a call.
    """
    part = np.flatnonzero(teams.region_of >= 0)
    part = part[~are_first_threads(trace)[calls.location[part]]]
    seconds = np.clip(teams.last_end_s[teams.region_of[part]] - calls.end_s[part], 0.0, None)
    columns = len(trace.locations)
    cell = row_of_call[part] * columns + calls.location[part]
    return sum_by_group(cell, seconds, rows * columns).reshape(rows, columns)


def _first_begin_times(calls: Calls, teams: ThreadTeams) -> FloatArray:
    """Return when the first thread of each team begins its part."""
    part = np.flatnonzero(teams.region_of >= 0)
    begin = np.full(len(teams.last_end_s), np.inf)
    np.minimum.at(begin, teams.region_of[part], calls.start_s[part])
    return begin


def _find_team_parts(trace: Trace, calls: Calls) -> IntArray:
    """Return the calls in which threads do their parts of parallel regions, the outermost ones."""
    working = have_roles(trace, calls.region, TEAM_ROLES)
    part = np.flatnonzero(working)
    parent = calls.parent[part]
    return part[(parent < 0) | ~working[parent]]


def _number_regions(trace: Trace, calls: Calls, part: IntArray) -> IntArray:
    """Return the parallel region of each part, numbered over all processes."""
    rank_of = ranks_of_locations(trace)
    first_thread = are_first_threads(trace)
    location = calls.location[part]
    region = np.zeros(len(part), dtype=np.int64)
    forks = np.flatnonzero(trace.kind == Kind.FORK)
    forking_rank = rank_of[locations_of_events(trace, forks)]
    base = 0
    for rank in np.unique(rank_of[location]):
        mine = rank_of[location] == rank
        own = part[mine & first_thread[location]]
        begins = _region_begin_times(trace, calls, own, forks[forking_rank == rank])
        number = np.searchsorted(begins, calls.start_s[part[mine]], side="right") - 1
        region[mine] = base + np.clip(number, 0, None)
        base += max(len(begins), 1)
    return region


def _region_begin_times(trace: Trace, calls: Calls, own: IntArray, forks: IntArray) -> FloatArray:
    """Return when the parallel regions of a process begin: at its fork where that is recorded for each."""
    return np.sort(trace.time_s[forks] if len(forks) == len(own) else calls.start_s[own])


def _group_barriers(trace: Trace, calls: Calls, region_of: IntArray) -> tuple[IntArray, IntArray]:
    """Return the barriers that several threads of a team took part in, by parallel region and count."""
    chosen = np.flatnonzero(have_roles(trace, calls.region, (Role.OMP_BARRIER,)))
    chosen = chosen[calls.anchor[chosen] == chosen]
    # the parallel region in which each of the chosen calls lies, -1 outside of all
    region = np.full(len(chosen), -1, dtype=np.int64)
    call = chosen.copy()
    while (call >= 0).any():
        known = np.where(call >= 0, region_of[np.maximum(call, 0)], -1)
        region = np.where(region >= 0, region, known)
        call = np.where((call >= 0) & (region < 0), calls.parent[np.maximum(call, 0)], -1)
    chosen, region = chosen[region >= 0], region[region >= 0]
    location = calls.location[chosen]
    turn = count_previous(location * (int(region.max(initial=0)) + 1) + region)
    order = np.lexsort((location, turn, region))
    key = region[order] * (int(turn.max(initial=0)) + 1) + turn[order]
    starts = np.flatnonzero(np.r_[True, np.diff(key) != 0][: len(key)])
    size = np.diff(np.r_[starts, len(order)])
    kept = np.repeat(size > 1, size)
    return chosen[order[kept]], np.r_[0, np.cumsum(size[size > 1])].astype(np.int64)


def _find_next_times(location: IntArray, time_s: FloatArray, wanted: IntArray, from_s: FloatArray) -> FloatArray:
    """Return the first of some times (``time_s`` at ``location``) from ``from_s`` on at ``wanted``, -inf for none."""
    place, moment = np.r_[wanted, location], np.r_[from_s, time_s]
    order = np.lexsort((np.arange(len(place)), moment, place))  # of equal moments those that are wanted come first
    at = np.where(order < len(wanted), len(order), np.arange(len(order)))
    following = np.r_[order, len(order)][np.minimum.accumulate(at[::-1])[::-1]]
    found = np.empty(len(order), dtype=np.int64)
    found[order] = following
    found = found[: len(wanted)]
    known = np.r_[place, -1][found] == wanted
    return np.where(known, np.r_[moment, -np.inf][found], -np.inf)
