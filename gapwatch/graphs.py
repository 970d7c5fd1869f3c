"""A profile as a GraphFrame of Hatchet: the program, its phases, and the regions of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.model.errors import AdvisorError
from advisor.model.records import MEASURES, FloatArray, Profile

if TYPE_CHECKING:
    import hatchet
    from hatchet.node import Node


def build_graph_frame(profile: Profile) -> hatchet.GraphFrame:
    """Return a GraphFrame with a row for each node on each rank and thread.

    ``time`` are own seconds of wall time, ``time (inc)`` those with children; where no wall time was taken, the first
    measure that was stands for it under its own name. Every measure of the profile is a column of own seconds, 0 in
    nodes of the program and of phases, NaN in phases where it was not taken. Rank and thread are levels of the index
    if there are several of them, else columns. Raises ``AdvisorError`` where Hatchet is not installed, or the run has
    no seconds.
    """
    try:
        from hatchet import GraphFrame
        from hatchet.graph import Graph
        from pandas import DataFrame
    except ImportError as error:
        raise AdvisorError("Hatchet is not installed: pip install llnl-hatchet") from error
    measures = [name for name in MEASURES if any(name in phase.arrays for phase in profile.phases)]
    if not measures:
        raise AdvisorError("no seconds were recorded, so that Hatchet has nothing to show")
    main = "wall_s" if "wall_s" in measures else measures[0]
    column = "time" if main == "wall_s" else main
    zero = np.zeros(len(profile.processors))
    of_parents = dict.fromkeys(measures, zero)
    root = _make_node(profile.program, "program")
    nodes: list[tuple[Any, dict[str, FloatArray], FloatArray]] = []
    for phase in profile.phases:
        above = _make_node(phase.name, "phase", root)
        below = []
        for number, region in enumerate(profile.regions[index] for index in phase.regions):
            node = _make_node(region.name, "region", above, file=region.file, line=region.line)
            taken = {name: array[number].sum(axis=1) for name, array in phase.arrays.items()}
            own = {name: taken.get(name, np.full_like(zero, np.nan)) for name in measures}
            below.append((node, own, np.nan_to_num(own[main])))
        nodes += [(above, of_parents, sum((own for *_, own in below), zero)), *below]
    phases = (inclusive for node, _, inclusive in nodes if node.frame["type"] == "phase")
    nodes.insert(0, (root, of_parents, sum(phases, zero)))
    graph = Graph([root])
    graph.enumerate_traverse()
    rows = [
        {"node": node, "rank": processor.rank, "thread": processor.thread, "name": node.frame["name"]}
        | {name: float(values[name][place]) for name in measures}
        | {column: float(values[main][place]), f"{column} (inc)": float(inclusive[place])}
        for node, values, inclusive in nodes
        for place, processor in enumerate(profile.processors)
    ]
    several = [name for name in ("rank", "thread") if len({getattr(one, name) for one in profile.processors}) > 1]
    frame = DataFrame(rows).set_index(["node", *(several or ["rank"])]).sort_index()
    own_columns = list(dict.fromkeys((column, *measures)))
    return GraphFrame(graph, frame, own_columns, [f"{column} (inc)"], column)


def _make_node(name: str, kind: str, parent: Node | None = None, **place: str | int | None) -> Node:
    """Return a node below ``parent``; Hatchet orders frames, so that a place that is not known is no attribute."""
    from hatchet.frame import Frame
    from hatchet.node import Node

    known = {key: value for key, value in place.items() if value is not None}
    node = Node(Frame(name=name, type=kind, **known), parent=parent)
    if parent is not None:
        parent.add_child(node)
    return node
