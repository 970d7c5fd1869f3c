"""Split the summed seconds of MPI, OpenMP and I/O calls into categories.

Nothing says when the partners of a call arrived. So the shortest time that a call of the same name and size took
anywhere is what it costs, and the rest of each is waiting: an estimate, unless the tool measured the waiting itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.events import SYNCHRONIZING_ROLES, Role
from advisor.trace.waits import BLOCKING_ROLES

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.callpaths.records import CallPaths
    from advisor.trace.callpaths.tree import CutTree

#: Roles whose seconds lie in no phase, by the part of the run they belong to.
OUTSIDE: Final = {Role.INIT: "start-up", Role.FINALIZE: "shutdown", Role.TOOL: "measurement"}

#: Why a call waits when nothing but its name is known.
_KINDS: Final = {
    Role.BARRIER: "barrier",
    Role.ALL_TO_ALL: "collective",
    Role.ONE_TO_ALL: "collective",
    Role.ALL_TO_ONE: "collective",
    Role.SCAN: "collective",
    Role.OMP_BARRIER: "thread barrier",
    Role.OMP_LOCK: "lock",
}


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One call path into a library: its node, what it does, and its seconds on each processor (Q,) by category.

    ``kind`` says why it waits; ``estimated`` whether waiting was told from the rest by the shortest call.
    """

    node: int
    role: Role
    kind: str
    wait_s: FloatArray
    sync_s: FloatArray
    transfer_s: FloatArray
    io_s: FloatArray
    estimated: bool


def split_library_calls(paths: CallPaths, tree: CutTree) -> tuple[LibraryCall, ...]:
    """Return the calls of the library nodes of ``tree`` that spent time, without start-up and shutdown."""
    if paths.wall_s is None:
        return ()
    nodes = [n for n in tree.calls.tolist() if paths.nodes[n].role not in OUTSIDE and tree.wall_s[n].any()]
    least = _least_call_seconds(paths, tree, nodes)
    return tuple(call for n in nodes for call in _split_node(paths, tree, n, least[n]))


def _split_node(paths: CallPaths, tree: CutTree, node: int, least: FloatArray) -> list[LibraryCall]:
    """Return the seconds of one node: one call for each kind of waiting that was measured, else a single one."""
    role = paths.nodes[node].role
    total, zero = tree.wall_s[node], np.zeros(len(paths.processors))
    measured = {kind: seconds[node] for kind, seconds in tree.waits.items() if seconds[node].any()}
    if role not in BLOCKING_ROLES or paths.waits:
        wait, kind, estimated = np.minimum(sum(measured.values(), zero), total), "none", False
    else:
        wait, kind, estimated = np.maximum(total - least, 0.0), _KINDS.get(role, "unmatched"), True
    rest = total - wait
    synchronizes, io, taken = role in SYNCHRONIZING_ROLES, role == Role.IO, role == Role.OS
    found = LibraryCall(
        node, role, kind, wait if estimated else zero, rest if synchronizes else zero,
        zero if synchronizes or io or taken else rest, rest if io else zero, estimated,
    )  # fmt: skip
    # What was measured may add up to more than the call took; then each kind shares what there is.
    told = sum(measured.values(), zero)
    scale = np.divide(wait, told, out=np.ones_like(total), where=told > 0)
    return [
        found,
        *(
            LibraryCall(node, role, kind, seconds * scale, zero, zero, zero, False)
            for kind, seconds in measured.items()
        ),
    ]


def _least_call_seconds(paths: CallPaths, tree: CutTree, nodes: list[int]) -> dict[int, FloatArray]:
    """Return for each node what its calls take at least on each processor, seconds.

    That is the shortest mean time of one call among all paths and processors, or the shortest single call where the
    tool recorded it, for calls of the same name and size class, times the number of calls. Without the number of
    calls all processors are taken to have called equally often.
    """
    shortest: dict[tuple[str, int], float] = {}
    # the bit length of the mean bytes of a call of ``node`` over all processors, -1 where it is not known
    groups = {n: (paths.nodes[n].name, int(compute_size_classes(paths, tree, np.array([n]))[0])) for n in nodes}
    visits = {n: _count_visits(tree, n) for n in nodes}
    for n, group in groups.items():
        here = _shortest_call_seconds(paths, tree, n, visits[n])
        shortest[group] = min(here, shortest.get(group, np.inf))
    return {n: visits[n] * shortest[groups[n]] for n in nodes}


def _shortest_call_seconds(paths: CallPaths, tree: CutTree, node: int, visits: FloatArray) -> float:
    called = visits > 0
    mean = tree.wall_s[node][called] / visits[called]
    if paths.shortest_s is not None:
        mean = np.fmin(mean, paths.shortest_s[node][called])
    return float(mean.min(initial=np.inf)) if called.any() else 0.0


def _count_visits(tree: CutTree, node: int) -> FloatArray:
    """Return how often each processor called; once where that was not counted and the processor spent time."""
    seconds: FloatArray = tree.wall_s[node]
    if tree.visits is None:
        return (seconds > 0).astype(np.float64)
    counted: FloatArray = tree.visits[node]
    return counted


def compute_size_classes(paths: CallPaths, tree: CutTree, nodes: IntArray) -> IntArray:
    """Return the bit length of the mean bytes of one call of each of ``nodes``, -1 where it is not known."""
    if tree.bytes is None or tree.visits is None:
        return np.full(len(nodes), -1, dtype=np.int64)
    moved, called = tree.bytes[nodes].sum(axis=1), tree.visits[nodes].sum(axis=1)
    mean = np.divide(moved, called, out=np.full(len(nodes), -1.0), where=called > 0)
    return np.where(mean < 0, -1, np.ceil(np.log2(mean.clip(1) + 1))).astype(np.int64)
