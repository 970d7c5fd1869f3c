"""Where synchronizations of all processors cut the run, and which phase each piece is an instance of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.traces import locations
from advisor.traces.cycles import identities
from advisor.traces.events import Role
from advisor.traces.nesting import roles

if TYPE_CHECKING:
    from advisor.model import FloatArray, IntArray
    from advisor.traces.events import Trace
    from advisor.traces.matching import Collectives
    from advisor.traces.nesting import Calls
    from advisor.traces.teams import Teams


@dataclass(frozen=True, slots=True)
class Division:
    """The run cut into K instances.

    ``edges_s`` (K + 1,): instance k lasts from ``edges_s[k]`` to ``edges_s[k + 1]`` for everybody. ``leaves_s`` holds
    (K - 1, locations) when each location left the synchronizations. ``closing`` (K, locations) is the
    call in which each location closes the instance, -1 where it takes no part.
    """

    edges_s: FloatArray
    leaves_s: FloatArray
    closing: IntArray

    @property
    def instances(self) -> int:
        """The number of instances."""
        return len(self.edges_s) - 1


def divide(trace: Trace, calls: Calls, joint: Collectives, teams: Teams) -> Division:
    """Return the instances of ``trace``: from the start-up's end to the shutdown's begin."""
    role = roles(trace)[calls.region]
    masters = _masters(trace)
    closing = _synchronizations(calls, joint, teams, masters)
    ends = np.where(closing >= 0, calls.end_s[np.maximum(closing, 0)], -np.inf)
    order = np.argsort(ends.max(axis=1, initial=-np.inf), kind="stable")
    closing, ends = closing[order], ends[order]
    begin, finish, last_calls = _run_edges(trace, calls, role)
    kept = ends.max(axis=1, initial=-np.inf) > begin
    closing, ends = closing[kept], ends[kept]
    leaves = np.where(np.isneginf(ends), ends[:, masters], ends)
    edges = np.maximum.accumulate(np.r_[begin, ends.max(axis=1, initial=-np.inf), finish])
    return Division(edges, np.maximum.accumulate(leaves, axis=0), np.vstack((closing, last_calls)))


def identify(division: Division, calls: Calls, regions: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return phase and iteration of each instance from its closing call and the user regions inside it.

    ``regions`` holds for each instance the sorted user regions that were entered in it.
    """
    seen: dict[tuple[object, ...], int] = {}
    numbers = []
    for k, inside in enumerate(regions):
        closers = division.closing[k]
        part = closers >= 0
        call = int(calls.region[closers[part]].min()) if part.any() else -1
        key = (call, part.tobytes(), inside.tobytes())
        numbers.append(seen.setdefault(key, len(seen)))
    return identities(np.array(numbers, dtype=np.int64))


def _masters(trace: Trace) -> IntArray:
    """Return for each location the first location of its process."""
    ranks = locations.ranks(trace)
    threads = np.array([location.thread for location in trace.locations], dtype=np.int64)
    order = np.lexsort((threads, ranks))
    _, first = np.unique(ranks[order], return_index=True)
    return order[first][np.unique(ranks, return_inverse=True)[1]]


def _synchronizations(calls: Calls, joint: Collectives, teams: Teams, masters: IntArray) -> IntArray:
    """Return (synchronizations, locations): the call in which each location joins, -1 where it does not."""
    processes = len(np.unique(masters))
    size = np.diff(joint.first)
    everybody = np.isin(joint.role, (Role.BARRIER, Role.ALL_TO_ALL)) & (size == processes)
    table = [_rows(joint.call, joint.first, np.flatnonzero(everybody), calls, len(masters))]
    if processes == 1 and len(masters) > 1:
        whole = np.flatnonzero(np.diff(teams.first) == len(masters))
        table.append(_rows(teams.barrier, teams.first, whole, calls, len(masters)))
    return np.vstack(table)


def _rows(call: IntArray, first: IntArray, chosen: IntArray, calls: Calls, locations: int) -> IntArray:
    """Return the calls of the chosen groups as a table (groups, locations)."""
    rows = np.full((len(chosen), locations), -1, dtype=np.int64)
    if len(chosen):
        size = int(first[chosen[0] + 1] - first[chosen[0]])
        members = call[first[chosen][:, None] + np.arange(size)]
        rows[np.arange(len(chosen))[:, None], calls.location[members]] = members
    return rows


def _run_edges(trace: Trace, calls: Calls, role: IntArray) -> tuple[float, float, IntArray]:
    """Return when the last process is started up, when the last one begins to shut down, and the calls that do so."""
    occupied = np.diff(trace.first) > 0
    first_event = trace.time_s[trace.first[:-1][occupied]]
    starting = calls.end_s[role == Role.INIT]
    processes = locations.are_first_threads(trace)[occupied]
    begin = float(starting.max()) if len(starting) else float(first_event[processes].max(initial=0.0))
    stopping = np.flatnonzero((role == Role.FINALIZE) & (calls.anchor == np.arange(len(role))))
    closers = np.full(len(trace.locations), -1, dtype=np.int64)
    if shutdown_is_recorded(trace):
        closers[calls.location[stopping[::-1]]] = stopping[::-1]
    named = closers[closers >= 0]
    finish = float(calls.start_s[named].max()) if len(named) else _last_moment(trace, calls, role)
    return begin, max(finish, begin), closers


def shutdown_is_recorded(trace: Trace) -> bool:
    """Return whether the trace shows when processes shut down, and not only when the tracer did."""
    names = {region.name for region in trace.regions if region.role == Role.FINALIZE}
    return not names or any(name.startswith("MPI_") for name in names)


def _last_moment(trace: Trace, calls: Calls, role: IntArray) -> float:
    """Return the end of the run: the last event; where only the tracer's shutdown is recorded, the last call.

    Tracers let the processes write their files one after the other, which is no imbalance of the program.
    """
    done = calls.end_s[~np.isin(role, (Role.ROOT, Role.FINALIZE, Role.TOOL, Role.INIT))]
    if shutdown_is_recorded(trace) or not len(done):
        return float(trace.time_s.max())
    return float(done.max())
