"""What changes would have won: the recorded graph of host calls, streams and communications, timed anew."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.changes import CHANGES
from advisor.trace.devices.run_graph import GRAPH_CALLS, build_graph, order_steps, time_graph

if TYPE_CHECKING:
    from advisor.model.devices import DeviceGain
    from advisor.model.records import FloatArray
    from advisor.trace.devices.events import DeviceTrace
    from advisor.trace.devices.run_graph import RunGraph

#: Larger traces are not replayed: calls to devices and activities together.
MOST_EVENTS: Final = 400_000
#: The replay of the unchanged run must give its length to this share.
_FAITHFUL: Final = 0.01


def replay_changes(trace: DeviceTrace, waiting_until_s: FloatArray) -> tuple[DeviceGain, ...]:
    """Return what each change would have won; nothing where the run is too long or can't be reproduced."""
    feeding = np.isin(trace.calls.role, GRAPH_CALLS)
    if int(feeding.sum()) + len(trace.activities.start_s) > MOST_EVENTS:
        return ()
    graph = build_graph(trace, waiting_until_s)
    steps = order_steps(graph)
    length = time_graph(graph, steps)
    if not length or abs(length - _recorded_length(graph)) > _FAITHFUL * trace.length_s:
        return ()

    def compute_gain(changed: RunGraph) -> float:
        return 0.0 if _are_equal(changed, graph) else max(length - time_graph(changed, steps), 0.0)

    return tuple(found for change in CHANGES for found in [change(trace, graph, compute_gain)] if found.high_s > 0)


def _are_equal(changed: RunGraph, graph: RunGraph) -> bool:
    """Return whether a change found nothing to change, which need not be timed."""
    pairs = ((getattr(changed, each.name), getattr(graph, each.name)) for each in fields(graph))
    return all(one is other or np.array_equal(one, other) for one, other in pairs)


def _recorded_length(graph: RunGraph) -> float:
    return float(max(graph.call_end_s.max(initial=0.0), graph.end_s.max(initial=0.0)))
