"""What changes would have won: the recorded graph of host calls, streams and communications, timed anew."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor.support.compiling import is_worth_compiling, jit
from advisor.trace.devices.changes import CHANGES
from advisor.trace.devices.events import Activity, DeviceTrace
from advisor.trace.devices.naming import MANAGED, match_names
from advisor.trace.devices.run_graph import GRAPH_CALLS, INSTANT_S, RunGraph, build_graph

if TYPE_CHECKING:
    from advisor.model.devices import DeviceGain
    from advisor.model.records import BoolArray, FloatArray, IntArray

    Rows = Sequence[int]
    Seconds = Sequence[float]
    Times = MutableSequence[float]

#: Larger traces are not replayed: calls to devices and activities together.
MOST_EVENTS: Final = 400_000
#: What wins less than this share of the run needs no interval.
_NEGLIGIBLE: Final = 5e-3
#: The replay of the unchanged run must give its length to this share.
_FAITHFUL: Final = 0.01
#: So many steps are worth compiled code, where that is kept and where it is compiled each time: a run is timed often.
_WORTH_LOADING, _WORTH_COMPILING = 100_000, 600_000
#: What follows may move what follows that: so often at most.
_PASSES: Final = 50


def replay_changes(trace: DeviceTrace, waiting_until_s: FloatArray) -> tuple[DeviceGain, ...]:
    """Return what each change would have won, at most the run; nothing where it is too long or can't be reproduced."""
    apart = ~_find_migrations(trace)
    acts = trace.activities
    kept = {each.name: getattr(acts, each.name)[apart] for each in fields(acts)}
    trace, waiting_until_s = replace(trace, activities=replace(acts, **kept)), waiting_until_s[apart]
    feeding = np.isin(trace.calls.role, GRAPH_CALLS)
    if int(feeding.sum()) + len(trace.activities.start_s) > MOST_EVENTS:
        return ()
    graph = build_graph(trace, waiting_until_s)
    timer = GraphTimer(graph)
    length = timer.time_graph(graph)
    if not length or abs(length - _recorded_length(graph)) > _FAITHFUL * trace.length_s:
        return ()

    gains = (change(trace, graph, _Timer(graph, timer, length).compute_gain) for change in CHANGES)
    return tuple(replace(found, high_s=min(found.high_s, length)) for found in gains if found.high_s > 0)


def _find_migrations(trace: DeviceTrace) -> BoolArray:
    """Return which copies of managed memory no call asked for.

    A kernel or the host faulted, whose seconds hold them: they take no time of their own, and move with it.
    """
    acts = trace.activities
    found: BoolArray = (acts.kind == Activity.COPY) & match_names(trace, MANAGED)[acts.name] & (acts.call < 0)
    return found


class _Timer:
    """Times the variants of one change: the usual one first, the others only where that one wins anything."""

    def __init__(self, graph: RunGraph, timer: GraphTimer, length_s: float) -> None:
        self._graph, self._timer, self._length_s = graph, timer, length_s
        self._usual_s: float | None = None

    def compute_gain(self, changed: RunGraph) -> float:
        """Return how much shorter the run of a changed graph is, seconds."""
        if self._usual_s is not None and self._usual_s < _NEGLIGIBLE * self._length_s:
            return self._usual_s
        won = 0.0
        if not _are_equal(changed, self._graph):
            won = max(self._length_s - self._timer.time_graph(changed), 0.0)
        self._usual_s = won if self._usual_s is None else self._usual_s
        return won


def _are_equal(changed: RunGraph, graph: RunGraph) -> bool:
    """Return whether a change found nothing to change, which need not be timed."""
    pairs = ((getattr(changed, each.name), getattr(graph, each.name)) for each in fields(graph))
    return all(one is other or np.array_equal(one, other) for one, other in pairs)


def _recorded_length(graph: RunGraph) -> float:
    return float(max(graph.call_end_s.max(initial=0.0), graph.end_s.max(initial=0.0)))


class GraphTimer:
    """Times a graph, and graphs that were made of it by leaving out causes and changing seconds."""

    def __init__(self, graph: RunGraph) -> None:
        # the kinds of steps and what each times, causes first: what neither waits nor has partners ends with its
        # start, in one step
        moments = _order_times(graph)
        calls, acts = np.arange(len(graph.awaits)), np.arange(len(graph.group))
        rows = (acts[graph.group >= 0], calls[graph.awaits >= 0], calls, acts)
        times = np.concatenate([each[some] for each, some in zip(moments, rows, strict=True)])
        kinds = np.repeat(np.arange(4), [len(each) for each in rows])
        order = np.lexsort((kinds, times))
        self._kinds, self._index = kinds[order], np.concatenate(rows)[order]
        self._compiled = is_worth_compiling(len(self._kinds), loading=_WORTH_LOADING, compiling=_WORTH_COMPILING)
        self._graph = graph
        #: Lists take time to make: most changes share most columns with the graph.
        self._lists: dict[int, list[Any]] = {}
        if not self._compiled:
            own = (self._kinds, self._index, *_list_causes(graph), *_list_seconds(graph))
            self._lists = {id(column): column.tolist() for column in own}

    def time_graph(self, graph: RunGraph) -> float:
        """Return the length of the run, seconds from its begin; compiled or not, the result is the same to the bit."""
        columns = (self._kinds, self._index, *_list_causes(graph), *_list_seconds(graph), graph.issue_s + graph.delay_s)
        calls, acts, groups = len(graph.call_start_s), len(graph.start_s), int(graph.group.max(initial=-1)) + 1
        if self._compiled:
            ended, done = np.zeros(calls + 1), np.full(acts + 1, -np.inf)
            _compile_walk()(*columns, np.zeros(calls + 1), ended, done, np.full(groups, -np.inf))
            return max(float(ended.max()), float(done.max()))
        lists: list[list[Any]] = [self._lists.get(id(column)) or column.tolist() for column in columns]
        call_end, act_end = [0.0] * (calls + 1), [-np.inf] * (acts + 1)
        lists += [[0.0] * (calls + 1), call_end, act_end, [-np.inf] * groups]
        walk_steps(*lists)
        return max(max(call_end), max(act_end))


def _list_causes(graph: RunGraph) -> tuple[IntArray, ...]:
    return graph.before, graph.awaits, graph.issuer, graph.previous, graph.other, graph.group


def _list_seconds(graph: RunGraph) -> tuple[FloatArray, ...]:
    return graph.gap_s, graph.call_s, graph.after_s, graph.behind_s, graph.length_s


def _order_times(graph: RunGraph) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return by which moments ends of activities and calls, and starts of calls and activities, are timed.

    Causes come first: of equal moments ends come before starts, and nothing ends at the moment at which it starts.
    """
    call_end = np.maximum(graph.call_end_s, graph.call_start_s + INSTANT_S)
    start, end = graph.start_s, graph.end_s
    members = graph.group >= 0
    for _ in range(_PASSES):
        before, end = start, np.maximum(end, start + INSTANT_S)
        last = np.full(int(graph.group.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(last, graph.group[members], start[members])
        end[members] = np.maximum(end[members], last[graph.group[members]] + INSTANT_S)
        for cause in (graph.previous, graph.other):
            start = np.where(cause >= 0, np.maximum(start, end[cause]), start)
        if len(graph.call_start_s):
            start = np.where(graph.issuer >= 0, np.maximum(start, graph.call_start_s[graph.issuer]), start)
        if (start == before).all():
            break
    if len(end):
        call_end = np.where(graph.awaits >= 0, np.maximum(call_end, end[graph.awaits]), call_end)
    return end, call_end, graph.call_start_s, start


@cache
def _compile_walk() -> Callable[..., None]:
    """Return ``walk_steps`` compiled, which takes arrays only; imports numba."""
    return jit(allocating=False)(walk_steps)


def walk_steps(
    kinds: Rows, index: Rows, before: Rows, awaits: Rows, issuer: Rows, previous: Rows, other: Rows, group: Rows,
    gap: Seconds, call_s: Seconds, after: Seconds, behind: Seconds, length: Seconds, issue: Seconds,
    call_start: Times, call_end: Times, done: Times, last_start: Times,
) -> None:  # fmt: skip
    """Fill the times; columns as in ``RunGraph``, ``issue`` is from the start of the issuer to the earliest start.

    Steps are of the kinds 0 end of an activity, 1 end of a call, 2 start of a call, 3 start of an activity. A cause of
    -1 is the last of the times, which is there for that: 0 for calls, minus infinity for activities.
    """
    for kind, n in zip(kinds, index):  # noqa: B905 - numba knows no strict
        if kind == 2:
            call_start[n] = begin = gap[n] + call_end[before[n]]
            call_end[n] = begin + call_s[n]
        elif kind == 3:
            ready = issue[n] + call_start[issuer[n]]
            free = done[previous[n]] + behind[n]
            if free > ready:
                ready = free
            free = done[other[n]] + behind[n]
            if free > ready:
                ready = free
            if group[n] < 0:
                done[n] = ready + length[n]
            elif ready > last_start[group[n]]:
                last_start[group[n]] = ready
        elif kind == 0:
            if group[n] >= 0:
                done[n] = last_start[group[n]] + length[n]
        elif awaits[n] >= 0:
            call_end[n] = max(call_start[n], done[awaits[n]]) + after[n]
