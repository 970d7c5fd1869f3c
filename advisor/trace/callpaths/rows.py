"""Profile rows of call paths: one per region, and a second one where threads execute it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import CallPaths
    from advisor.trace.callpaths.tree import CutTree


@dataclass(frozen=True, slots=True)
class RegionRows:
    """Where each node's values go.

    ``nodes`` (R,) is a node that stands for each row, ``threaded`` (R,) whether the row holds what threads execute.
    ``master`` and ``worker`` (nodes,) are the rows of a node's values on first threads and on the others;
    ``workers`` (Q,) tells which processors are others.
    """

    nodes: IntArray
    threaded: npt.NDArray[np.bool_]
    master: IntArray
    worker: IntArray
    workers: npt.NDArray[np.bool_]

    def sum_by_row(self, values: FloatArray) -> FloatArray:
        """Return ``values`` (nodes, processors) added up by row (R, processors)."""
        return self.sum_node_values(enumerate(values))

    def sum_node_values(self, parts: Iterable[tuple[int, FloatArray]]) -> FloatArray:
        """Return values per processor (Q,) of single nodes, given as pairs, added up by row (R, processors)."""
        found = np.zeros((len(self.nodes), len(self.workers)))
        for node, values in parts:
            master, worker = int(self.master[node]), int(self.worker[node])
            if master == worker:
                found[master] += values
            else:
                found[master] += np.where(self.workers, 0.0, values)
                found[worker] += np.where(self.workers, values, 0.0)
        return found

    def rows_of_cells(self, nodes: IntArray, processors: IntArray) -> IntArray:
        """Return the rows of nodes on processors, arrays of the same length; -1 for no node."""
        rows = np.where(self.workers[processors], self.worker[nodes], self.master[nodes])
        return np.where(nodes < 0, -1, rows)


def build_rows(paths: CallPaths, tree: CutTree) -> RegionRows:
    """Return the rows of the nodes of ``paths``; nodes inside library calls go with these calls."""
    workers = np.array([processor.thread > 0 for processor in paths.processors])
    numbers: dict[tuple[object, ...], int] = {}
    nodes: list[int] = []

    def number_row(owner: int, threaded: bool) -> int:
        node = paths.nodes[owner]
        key = (node.name, node.role, node.file, node.line, threaded)
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append(owner)
        return numbers[key]

    used = _has_worker_values(paths, workers)
    master = np.array([number_row(owner, bool(tree.threaded[owner])) for owner in tree.owner.tolist()])
    worker = np.array(
        [number_row(owner, True) if used[owner] else int(master[n]) for n, owner in enumerate(tree.owner.tolist())]
    )
    threaded = np.zeros(len(nodes), dtype=bool)
    for key, number in numbers.items():
        threaded[number] = bool(key[-1])
    return RegionRows(np.array(nodes), threaded, master, worker, workers)


def _has_worker_values(paths: CallPaths, workers: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which nodes (nodes,) have values on processors that are not the first thread of their rank."""
    used = np.zeros(len(paths.nodes), dtype=bool)
    if not workers.any():
        return used
    for values in (paths.wall_s, paths.cpu_s, paths.visits, *paths.counts.values()):
        if values is not None:
            used |= values[:, workers].any(axis=1)
    return used
