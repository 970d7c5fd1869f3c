"""The call tree cut at library calls, and the rows of a profile that it becomes.

Time inside a library belongs to the call that entered it. A region has a row, and a second one
where threads execute it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import Role

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import CallPaths

#: Roles in which the program itself works; the seconds of all others are those of a library call.
WORKING: Final = (Role.USER, Role.ROOT, Role.OMP_PARALLEL, Role.OMP_WORK)


@dataclass(frozen=True, slots=True)
class CutTree:
    """The nodes of ``CallPaths`` after folding everything below library calls into them.

    ``owner`` (nodes,) is the library call that a node happens in, or itself; ``caller`` the nearest working node above
    the owner (-1: none). ``calls`` lists the library calls. ``threaded`` (nodes,) tells what runs inside parallel
    regions of threads. ``wall_s``, ``visits``, ``bytes`` and ``waits`` are those of ``CallPaths``, the seconds of owned
    nodes added to their owners.
    """

    owner: IntArray
    caller: IntArray
    calls: IntArray
    threaded: npt.NDArray[np.bool_]
    wall_s: FloatArray
    visits: FloatArray | None
    bytes: FloatArray | None
    waits: Mapping[str, FloatArray]


def cut_at_library_calls(paths: CallPaths) -> CutTree:
    """Return the tree of ``paths``; what is done while holding a lock is work, not locking."""
    count = len(paths.nodes)
    owner, caller = np.arange(count), np.full(count, -1)
    threaded = np.zeros(count, dtype=bool)
    works = np.array([node.role in WORKING for node in paths.nodes], dtype=bool)
    concurrent = _has_threads_without_regions(paths)
    for n, node in enumerate(paths.nodes):
        above = node.parent
        threaded[n] = concurrent or node.role == Role.OMP_PARALLEL or (above >= 0 and bool(threaded[above]))
        if above < 0:
            continue
        inside = not works[owner[above]] and paths.nodes[owner[above]].role != Role.OMP_LOCK
        owner[n] = owner[above] if inside else n
        caller[n] = caller[above] if inside or not works[above] else above
    shape = (count, len(paths.processors))
    wall = np.zeros(shape) if paths.wall_s is None else _add_to_owners(paths.wall_s, owner)
    calls = np.flatnonzero((owner == np.arange(count)) & ~works)
    waits = {kind: _add_to_owners(seconds, owner) for kind, seconds in paths.waits.items()}
    return CutTree(owner, caller, calls, threaded, wall, paths.visits, _sum_moved_bytes(paths, owner), waits)


def _has_threads_without_regions(paths: CallPaths) -> bool:
    """Return whether threads run beside the first ones without parallel regions: then nothing is known to be serial."""
    workers = np.array([processor.thread > 0 for processor in paths.processors])
    if not workers.any() or paths.wall_s is None or any(node.role == Role.OMP_PARALLEL for node in paths.nodes):
        return False
    return bool(paths.wall_s[:, workers].any())


def _add_to_owners(seconds: FloatArray, owner: IntArray) -> FloatArray:
    """Return ``seconds`` with those of owned nodes added to their owners and gone from their own rows."""
    owned = np.flatnonzero(owner != np.arange(len(owner)))
    if not len(owned):
        return seconds
    total = seconds.copy()
    for node in owned.tolist():
        total[owner[node]] += seconds[node]
        total[node] = 0.0
    return total


def _sum_moved_bytes(paths: CallPaths, owner: IntArray) -> FloatArray | None:
    return None if paths.bytes is None else _add_to_owners(paths.bytes, owner)


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
