"""Domain decomposition: who owns which index.

``graph`` is recursive bisection along breadth-first levels from a peripheral vertex, with a pass that moves border
vertices where that cuts fewer edges. It is no match for METIS, but needs no library and gives the same answer
everywhere.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.errors import PluginError
from advisor.support.extras import install_line

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.model.tables import RaggedTable

    Mask = npt.NDArray[np.bool_]

#: Passes of moving border vertices, and by how much a half may miss its share of the weight while doing so.
PASSES = 6
SLACK = 0.01


def compute_owners(
    kind: str,
    size: int,
    parts: int,
    block: int = 1,
    weight: FloatArray | None = None,
    graph: RaggedTable | None = None,
    given: IntArray | None = None,
) -> IntArray:
    """Return the processor of each index (size,); ValueError where that can't be.

    ``block``: index i belongs to the k with floor(k n / P) <= i < floor((k + 1) n / P) (section 4.1.1); with weights,
    consecutive parts of about equal weight.
    """
    index = np.arange(size, dtype=np.int64)
    if kind == "cyclic":
        return index % parts
    if kind == "static":
        longer = (size // parts + 1) * (size % parts)
        return np.where(index < longer, index // (size // parts + 1), 0) + np.where(
            index >= longer, (index - longer) // max(size // parts, 1) + size % parts, 0
        )
    if kind == "block-cyclic":
        if block < 1:
            raise ValueError(f"block: expected at least 1, found {block}")
        return index // block % parts
    if kind == "explicit":
        return _require_explicit(given, size, parts)
    weight = np.ones(size) if weight is None else weight
    if (weight < 0).any() or weight.sum() <= 0:
        raise ValueError("weight: expected weights that are not negative, and not all zero")
    if kind == "block":
        return _split_blocks(index, parts, weight)
    if graph is None or graph.rows != size:
        raise ValueError(f"graph: expected a table of neighbours with {size} rows")
    if len(graph.values) and not (graph.values.min() >= 0 and graph.values.max() < size):
        raise ValueError(f"graph: expected neighbours from 0 to {size - 1}")
    return _partition_metis(graph, parts, weight) if kind == "metis" else bisect_graph(graph, parts, weight)


def _split_blocks(index: IntArray, parts: int, weight: FloatArray) -> IntArray:
    if (weight == weight[0]).all():
        edges = np.arange(1, parts) * len(index) // parts
        found: IntArray = np.searchsorted(edges, index, side="right").astype(np.int64)
        return found
    middle = np.cumsum(weight) - weight / 2
    part: IntArray = np.minimum((middle * parts / weight.sum()).astype(np.int64), parts - 1)
    return part


def _require_explicit(given: IntArray | None, size: int, parts: int) -> IntArray:
    if given is None or len(given) != size:
        raise ValueError(f"owner: expected a table of {size} processors")
    if given.min() < 0 or given.max() >= parts:
        raise ValueError(f"owner: expected processors 0 to {parts - 1}, found {given.min()} to {given.max()}")
    return given


def _partition_metis(graph: RaggedTable, parts: int, weight: FloatArray) -> IntArray:
    if find_spec("pymetis") is None:
        raise PluginError(f"decomposition by METIS needs pymetis: {install_line('processor')}; 'graph' needs nothing")
    adjacency = [graph.values[a:b] for a, b in zip(graph.first[:-1], graph.first[1:], strict=True)]
    whole = np.maximum(np.rint(weight / weight.mean() * 100), 1).astype(int)
    _, found = import_module("pymetis").part_graph(parts, adjacency=adjacency, vweights=list(whole))
    return np.array(found, dtype=np.int64)


def bisect_graph(graph: RaggedTable, parts: int, weight: FloatArray) -> IntArray:
    """Return the parts of a graph by recursive bisection, balanced by ``weight``."""
    owner = np.zeros(graph.rows, dtype=np.int64)
    todo = [(np.arange(graph.rows), 0, parts)]
    while todo:
        vertices, first, count = todo.pop()
        if count == 1 or not len(vertices):
            owner[vertices] = first
            continue
        left = count // 2
        inside = _split_half(graph, vertices, weight, left / count)
        todo += [(vertices[inside], first, left), (vertices[~inside], first + left, count - left)]
    return owner


def _split_half(graph: RaggedTable, vertices: IntArray, weight: FloatArray, share: float) -> Mask:
    """Return which of ``vertices`` make up the first part, of ``share`` of the weight (a mask)."""
    local = np.full(graph.rows, -1, dtype=np.int64)
    local[vertices] = np.arange(len(vertices))
    lists = [_local_neighbours(graph, vertex, local) for vertex in vertices]
    order = _order_levels(lists, _order_levels(lists, 0)[-1])
    mass = weight[vertices]
    total = np.cumsum(mass[order])
    mask = np.zeros(len(vertices), dtype=bool)
    mask[order[: max(1, int(np.searchsorted(total, share * total[-1])))]] = True
    for _ in range(PASSES):
        if not _move_border(lists, mask, mass, share):
            break
    return mask


def _local_neighbours(graph: RaggedTable, vertex: int, local: IntArray) -> list[int]:
    near = local[graph.values[graph.first[vertex] : graph.first[vertex + 1]]]
    return [int(one) for one in near[near >= 0]]


def _order_levels(lists: list[list[int]], start: int) -> list[int]:
    """Return all vertices in breadth-first order from ``start``; separate pieces follow one after the other."""
    seen = bytearray(len(lists))
    order: list[int] = []
    for root in (start, *range(len(lists))):
        if seen[root]:
            continue
        seen[root] = 1
        order.append(root)
        at = len(order) - 1
        while at < len(order):
            for near in lists[order[at]]:
                if not seen[near]:
                    seen[near] = 1
                    order.append(near)
            at += 1
    return order


def _move_border(lists: list[list[int]], mask: Mask, mass: FloatArray, share: float) -> bool:
    """Move border vertices to the side where most of their neighbours are; return whether any moved."""
    total = float(mass.sum())
    have = float(mass[mask].sum())
    moved = False
    for vertex, near in enumerate(lists):
        here = sum(mask[one] == mask[vertex] for one in near)
        if 2 * here >= len(near):
            continue
        after = have + (-mass[vertex] if mask[vertex] else mass[vertex])
        if abs(after - share * total) <= max(abs(have - share * total), SLACK * total):
            mask[vertex] = not mask[vertex]
            have, moved = after, True
    return moved
