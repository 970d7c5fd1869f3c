"""The call tree cut at library calls: time inside a library belongs to the call that entered it."""

from __future__ import annotations

from collections.abc import Mapping
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
