"""Cut points of a long trace: all processes synchronize, no message in flight, no open operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from advisor.trace.events import RECEIVES, SENDS, Kind, Role, Trace, are_kinds
from advisor.trace.locations import first_locations, ranks_of_locations
from advisor.trace.nesting import roles_of_regions
from advisor.trace.spool import release_memory
from advisor.trace.spreading import Spread, run_locally

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

#: Events of one location looked at together while places to cut are sought.
_BLOCK = 1 << 17
_RECEIVING = (*RECEIVES, Kind.IRECV_POST)
#: What the first thread of a process is not in the middle of at a cut, and what the other threads may be in.
_TOGETHER = (Role.OMP_PARALLEL, Role.OMP_BARRIER, Role.OMP_WORK, Role.OMP_LOCK)
_NOTHING_TO_DO = (Role.ROOT,)


def has_receives(trace: Trace) -> bool:
    """Return whether any receive was recorded, or its post; messages without are under way nowhere."""
    return any(are_kinds(trace.kind[block], *_RECEIVING).any() for block in iterate_blocks(0, len(trace.kind)))


def find_cut_points(trace: Trace, spread: Spread | None = None, *, compiled: bool) -> IntArray | None:
    """Return (cuts, locations): the events at which all locations can be cut; None where there are none.

    ``spread`` says who looks at the locations: this process, if nobody else.
    """
    spread = spread or partial(run_locally, trace)
    master = first_locations(trace)
    every = np.arange(len(master))
    waited_for = _has_role(trace, (Role.BARRIER, Role.ALL_TO_ALL))
    tables = _CutTables(_is_full_communicator(trace), waited_for, _has_role(trace, _TOGETHER))
    groups = [(low, high, tables, compiled) for low, high in _iterate_groups(trace, master == every)]
    found = [place for places in spread(find_candidates, groups) for place in places]
    common = _common_cut_points(found, waiting=has_receives(trace))
    if common is None:
        return None
    cuts = np.empty((len(common), len(master)), dtype=np.int64)
    cuts[:, master == every] = common
    good, counted = np.ones(len(cuts), dtype=bool), ~_has_role(trace, _NOTHING_TO_DO)
    others = every[master != every].tolist()
    tasks = [(number, cuts[:, master[number]], counted) for number in others]
    for number, (places, idle) in zip(others, spread(cut_thread, tasks), strict=True):
        cuts[:, number] = places
        good &= idle
    return cuts[good] if good.any() else None


def find_candidates(trace: Trace, low: int, high: int, tables: _CutTables, compiled: bool) -> list[_CutCandidates]:
    """Return where each of the locations from ``low`` up to ``high`` could be cut."""
    if high - low == 1:
        return [_find_candidates(trace, low, tables, compiled=compiled)]
    return list((_find_group_by_loop if compiled else _find_in_group)(trace, low, high, tables))


def cut_thread(
    trace: Trace, number: int, cuts: IntArray, counted: npt.NDArray[np.bool_]
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the events of a thread at which its process is cut, and whether it is in no ``counted`` region there."""
    mine = slice(int(trace.first[number]), int(trace.first[number + 1]))
    places = mine.start + np.searchsorted(trace.time_s[mine], trace.time_s[cuts - 1], side="right")
    return places, _is_thread_idle(trace, number, places, counted)


def _is_thread_idle(
    trace: Trace, number: int, places: IntArray, counted: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return whether a thread is in no call of ``counted`` regions, and has no threads, before each of the events."""
    idle = np.ones(len(places), dtype=bool)
    opened = 0
    for block in iterate_blocks(int(trace.first[number]), int(trace.first[number + 1])):
        running = opened + np.cumsum(_count_opened(trace, block, counted), dtype=np.int64)
        here = (places > block.start) & (places <= block.stop)
        idle[here] = running[places[here] - 1 - block.start] == 0
        opened = int(running[-1])
        release_memory((trace.kind, trace.region))
    return idle


def _count_opened(trace: Trace, block: slice, counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return by how many each event changes the number of open calls of ``counted`` regions, and teams of threads."""
    kind = trace.kind[block]
    counts = counted[trace.region[block]] if counted.any() else np.False_
    begun = ((kind == Kind.ENTER) & counts) | (kind == Kind.FORK)
    ended = ((kind == Kind.LEAVE) & counts) | (kind == Kind.JOIN)
    change: npt.NDArray[np.int32] = np.subtract(begun, ended, dtype=np.int32)
    return change


def _has_role(trace: Trace, wanted: Sequence[Role]) -> npt.NDArray[np.bool_]:
    """Return which regions are of such a role, by number; the last entry stands for none."""
    return np.isin(np.r_[roles_of_regions(trace), Role.USER], wanted)


@dataclass(frozen=True, slots=True)
class _CutCandidates:
    """The collectives of all processes in one location: the event behind each, its communicator, and what is open.

    ``good`` is False where a request or a team is open, or the collective holds nobody up; ``sent`` counts messages
    that were sent less those that were received.
    """

    event: IntArray
    comm: IntArray
    good: npt.NDArray[np.bool_]
    sent: IntArray


@dataclass(frozen=True, slots=True)
class _CutTables:
    """Which communicators are of all processes, in which regions all wait for all, and which belong to threads."""

    full: npt.NDArray[np.bool_]
    holds: npt.NDArray[np.bool_]
    together: npt.NDArray[np.bool_]


def _iterate_groups(trace: Trace, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield ranges of neighbouring chosen locations that have no more than ``_BLOCK`` events, or are one."""
    low = None
    for number in range(len(chosen)):
        if low is not None and not (chosen[number] and trace.first[number + 1] - trace.first[low] <= _BLOCK):
            yield low, number
            low = None
        if low is None and chosen[number]:
            low = number
    if low is not None:
        yield low, len(chosen)


def _find_in_group(trace: Trace, low: int, high: int, tables: _CutTables) -> Iterator[_CutCandidates]:
    """Yield where each of the locations from ``low`` up to ``high`` could be cut, looking at them together."""
    block = slice(int(trace.first[low]), int(trace.first[high]))
    edges = trace.first[low : high + 1] - block.start
    kind = trace.kind[block]
    at = np.flatnonzero(kind == Kind.COLLECTIVE)
    at = at[tables.full[trace.comm[block][at]]]
    location = np.searchsorted(edges, at, side="right") - 1
    counts = [np.r_[0, np.cumsum(change, dtype=np.int64)] for change in _open_changes(trace, block, tables)]
    sent, *opened = (count[at + 1] - count[edges[location]] for count in counts)
    after = np.minimum(at + 1, edges[location + 1] - 1) + block.start
    leaves = (trace.kind[after] == Kind.LEAVE) & tables.holds[trace.region[after]]
    good = leaves & ~np.logical_or.reduce(opened)
    comm = trace.comm[block][at].astype(np.int64)
    together = _CutCandidates(block.start + at + 2, comm, good, sent)
    yield from _split_by_location(together, location, high - low)


def _find_group_by_loop(trace: Trace, low: int, high: int, tables: _CutTables) -> Iterator[_CutCandidates]:
    """Yield what ``_find_in_group`` does, by a compiled loop."""
    edges = trace.first[low : high + 1]
    together, location = _run_loop(trace, edges, int(edges[-1]) - 1, tables, np.zeros(4, dtype=np.int64))
    yield from _split_by_location(together, location, high - low)


def _split_by_location(together: _CutCandidates, location: IntArray, locations: int) -> Iterator[_CutCandidates]:
    """Yield the candidates of each of some locations, of which those in ``together`` are in order."""
    for begin, end in pairwise(np.searchsorted(location, np.arange(locations + 1)).tolist()):
        yield _CutCandidates(*(getattr(together, name)[begin:end] for name in _CutCandidates.__slots__))


def _find_candidates(trace: Trace, number: int, tables: _CutTables, *, compiled: bool) -> _CutCandidates:
    """Return where a location could be cut."""
    nothing = np.zeros(0, dtype=np.int64)
    parts = [_CutCandidates(nothing, nothing, nothing.astype(bool), nothing)]
    before = np.zeros(4, dtype=np.int64)
    for block in iterate_blocks(int(trace.first[number]), int(trace.first[number + 1])):
        last = int(trace.first[number + 1]) - 1
        parts.append((_find_by_loop if compiled else _find_in_block)(trace, block, last, tables, before))
        release_memory(getattr(trace, name) for name in ("kind", "comm", "region"))
    return _CutCandidates(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in _CutCandidates.__slots__)
    )


def _find_by_loop(trace: Trace, block: slice, last: int, tables: _CutTables, before: IntArray) -> _CutCandidates:
    """Return what ``_find_in_block`` does, by a compiled loop."""
    return _run_loop(trace, np.array([block.start, block.stop]), last, tables, before)[0]


def _run_loop(
    trace: Trace, edges: IntArray, last: int, tables: _CutTables, before: IntArray
) -> tuple[_CutCandidates, IntArray]:
    """Return where the neighbouring locations between ``edges`` could be cut, and the number of each one's location."""
    from advisor.trace import compiled_loops

    room = int(np.count_nonzero(trace.kind[edges[0] : edges[-1]] == Kind.COLLECTIVE))
    found, good = np.empty((4, room), dtype=np.int64), np.empty(room, dtype=np.bool_)
    count = compiled_loops.find_cut_points(
        (trace.kind, trace.comm, trace.region), edges, last, (tables.full, tables.holds, tables.together),
        before, found, good,
    )  # fmt: skip
    event, comm, sent, location = found[:, :count]
    return _CutCandidates(event, comm, good[:count], sent), location


def _find_in_block(trace: Trace, block: slice, last: int, tables: _CutTables, before: IntArray) -> _CutCandidates:
    """Return where a block of a location that ends with the event ``last`` could be cut.

    ``before`` are the messages under way, the open sends, receives and teams before the block, and then behind it.
    """
    kind = trace.kind[block]
    at = np.flatnonzero(kind == Kind.COLLECTIVE)
    at = at[tables.full[trace.comm[block][at]]]
    after = np.minimum(block.start + at + 1, last)
    leaves = (trace.kind[after] == Kind.LEAVE) & tables.holds[trace.region[after]]
    counts = before[:, None] + np.stack([_running_sums(change, at) for change in _open_changes(trace, block, tables)])
    before[:] = counts[:, -1]
    closed = ~counts[1:, :-1].any(axis=0)
    return _CutCandidates(block.start + at + 2, trace.comm[block][at].astype(np.int64), leaves & closed, counts[0, :-1])


def _open_changes(trace: Trace, block: slice, tables: _CutTables) -> tuple[npt.NDArray[np.int32], ...]:
    """Return by how many each event changes the messages under way, the open sends, receives and teams of threads."""
    kind = trace.kind[block]
    return (
        _kind_difference(kind, SENDS, RECEIVES),
        _kind_difference(kind, (Kind.ISEND,), (Kind.ISEND_DONE,)),
        _kind_difference(kind, (Kind.IRECV_POST,), (Kind.IRECV,)),
        _count_opened(trace, block, tables.together),
    )


def _kind_difference(
    kind: npt.NDArray[np.uint8], these: Sequence[Kind], those: Sequence[Kind]
) -> npt.NDArray[np.int32]:
    """Return 1 for events of ``these`` kinds, -1 for ``those``."""
    return np.subtract(are_kinds(kind, *these), are_kinds(kind, *those), dtype=np.int32)


def _running_sums(change: npt.NDArray[np.int32], at: IntArray) -> IntArray:
    """Return the sums of ``change`` up to each of the places ``at``, which are in order, and that of all of it."""
    return np.cumsum(np.add.reduceat(np.append(change, np.int32(0)), np.r_[0, at + 1]), dtype=np.int64)


def _common_cut_points(found: list[_CutCandidates], *, waiting: bool) -> IntArray | None:
    """Return (cuts, locations): the events at which all locations can be cut; None where there are none.

    ``waiting`` says whether messages are waited for.
    """
    if any(not np.array_equal(each.comm, found[0].comm) for each in found):
        return None
    good = np.logical_and.reduce([each.good for each in found])
    chosen = good & (sum(each.sent for each in found) == 0) if waiting else good
    return np.stack([each.event[chosen] for each in found], axis=1) if chosen.any() else None


def _is_full_communicator(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which communicators hold all processes, by number; the last entry stands for none."""
    everybody = set(ranks_of_locations(trace).tolist())
    return np.array([set(members) == everybody for members in trace.communicators] + [False], dtype=bool)


def iterate_blocks(start: int, end: int) -> Iterator[slice]:
    """Yield the events from ``start`` to ``end`` in parts that are looked at together."""
    for begin in range(start, end, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, end))
