"""Columns over the locations (threads of execution) of a trace: process, thread and event range of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.events import Location, Trace


class _LocationColumns(NamedTuple):
    """Ranks and threads of some locations."""

    locations: tuple[Location, ...]
    rank: IntArray
    thread: IntArray


class _Latest:
    """What was asked about last: the locations of all windows of a trace are the same."""

    columns = _LocationColumns((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def ranks_of_locations(trace: Trace) -> IntArray:
    """Return the rank of every location."""
    return _look_up_locations(trace).rank.copy()


def _look_up_locations(trace: Trace) -> _LocationColumns:
    known = _Latest.columns
    if known.locations is not trace.locations:
        pairs = np.array([(location.rank, location.thread) for location in trace.locations], dtype=np.int64)
        rank, thread = pairs.reshape(-1, 2).T
        # in one step, and returned from here: other threads ask about other traces meanwhile
        known = _Latest.columns = _LocationColumns(trace.locations, rank.copy(), thread.copy())
    return known


def processes_of_locations(trace: Trace) -> IntArray:
    """Return for every location the number of its process, counted in the order of the ranks present."""
    return np.unique(ranks_of_locations(trace), return_inverse=True)[1].astype(np.int64)


def hosts_of_processes(trace: Trace) -> IntArray:
    """Return the number of the node of every process, -1 where it is not known, in the order of the ranks present."""
    names: dict[str, int] = {}
    host: IntArray = np.full(trace.ranks, -1, dtype=np.int64)
    for location, process in zip(trace.locations, processes_of_locations(trace).tolist(), strict=True):
        if location.host is not None:
            host[process] = names.setdefault(location.host, len(names))
    return host


def spans_of_processes(trace: Trace) -> tuple[FloatArray, FloatArray]:
    """Return the first and the last event of every process by its own clock, seconds (0 for one without events)."""
    process, some = processes_of_locations(trace), np.flatnonzero(np.diff(trace.first))
    begin, end = np.full(trace.ranks, np.inf), np.full(trace.ranks, -np.inf)
    np.minimum.at(begin, process[some], trace.time_s[trace.first[some]])
    np.maximum.at(end, process[some], trace.time_s[trace.first[some + 1] - 1])
    return np.where(np.isinf(begin), 0.0, begin), np.where(np.isinf(end), 0.0, end)


def are_first_threads(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return for every location whether it is the first thread of its process."""
    first: npt.NDArray[np.bool_] = _look_up_locations(trace).thread == 0
    return first


def first_locations(trace: Trace) -> IntArray:
    """Return for every location the first location of its process."""
    order = np.lexsort((_look_up_locations(trace).thread, ranks_of_locations(trace)))
    process = processes_of_locations(trace)
    _, first = np.unique(process[order], return_index=True)
    return order[first][process]


def locations_of_events(trace: Trace, events: IntArray) -> IntArray:
    """Return the location of each of some events, which are in order."""
    return np.repeat(np.arange(len(trace.locations)), np.diff(np.searchsorted(events, trace.first)))
