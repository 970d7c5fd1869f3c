"""What changes would have won: the recorded graph of host calls, streams and communications, timed anew."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.changes import CHANGES
from advisor.trace.devices.events import Activity, DeviceTrace
from advisor.trace.devices.graph_timer import GraphTimer
from advisor.trace.devices.naming import MANAGED, match_names
from advisor.trace.devices.run_graph import GRAPH_CALLS, RunGraph, build_graph

if TYPE_CHECKING:
    from advisor.model.devices import DeviceGain
    from advisor.model.records import BoolArray, FloatArray

#: Larger traces are not replayed: calls to devices and activities together.
MOST_EVENTS: Final = 400_000
#: What wins less than this share of the run needs no interval.
_NEGLIGIBLE: Final = 5e-3
#: The replay of the unchanged run must give its length to this share.
_FAITHFUL: Final = 0.01


def replay_changes(trace: DeviceTrace, waiting_until_s: FloatArray) -> tuple[DeviceGain, ...]:
    """Return what each change would have won; nothing where the run is too long or can't be reproduced."""
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
    return tuple(found for found in gains if found.high_s > 0)


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
