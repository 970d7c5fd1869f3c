"""A profile as a GraphFrame of Hatchet: the program, its phases, and the regions of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.model.errors import AdvisorError
from advisor.model.records import MEASURES

if TYPE_CHECKING:
    import hatchet

    from advisor.model.records import FloatArray, Profile


def build_graph_frame(profile: Profile) -> hatchet.GraphFrame:
    """Return a GraphFrame whose rows are nodes by rank and thread: own seconds ``time``, with children ``time (inc)``.

    Every measure of the profile is a column of own seconds, 0 in nodes of the program and of phases, NaN in phases
    where it was not taken. Raises ``AdvisorError`` where Hatchet is not installed.
    """
    try:
        from hatchet import GraphFrame
        from hatchet.frame import Frame
        from hatchet.graph import Graph
        from hatchet.node import Node
        from pandas import DataFrame
    except ImportError as error:
        raise AdvisorError("Hatchet is not installed: pip install llnl-hatchet") from error
    measures = [name for name in MEASURES if any(name in phase.arrays for phase in profile.phases)]
    zero = np.zeros(len(profile.processors))
    of_parents = dict.fromkeys(measures, zero)
    root = Node(Frame(name=profile.program, type="program"))
    nodes: list[tuple[Any, dict[str, FloatArray], FloatArray]] = []
    for phase in profile.phases:
        above = Node(Frame(name=phase.name, type="phase"), parent=root)
        root.add_child(above)
        below = []
        for number, region in enumerate(profile.regions[index] for index in phase.regions):
            node = Node(Frame(name=region.name, type="region", file=region.file, line=region.line), parent=above)
            above.add_child(node)
            taken = {name: array[number].sum(axis=1) for name, array in phase.arrays.items()}
            own = {name: taken.get(name, np.full_like(zero, np.nan)) for name in measures}
            below.append((node, own, own.get("wall_s", zero)))
        nodes += [(above, of_parents, sum((wall for *_, wall in below), zero)), *below]
    phases = (wall for node, _, wall in nodes if node.frame["type"] == "phase")
    nodes.insert(0, (root, of_parents, sum(phases, zero)))
    graph = Graph([root])
    graph.enumerate_traverse()
    rows = [
        {"node": node, "rank": processor.rank, "thread": processor.thread, "name": node.frame["name"]}
        | {name: float(values[name][place]) for name in measures}
        | {"time": float(values.get("wall_s", zero)[place]), "time (inc)": float(inclusive[place])}
        for node, values, inclusive in nodes
        for place, processor in enumerate(profile.processors)
    ]
    frame = DataFrame(rows).set_index(["node", "rank", "thread"]).sort_index()
    return GraphFrame(graph, frame, exc_metrics=["time", *measures], inc_metrics=["time (inc)"])
