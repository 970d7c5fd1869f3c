"""Why processors communicate, wait, synchronize and do I/O, as far as sums over calls tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, IntArray
from advisor.trace.callpaths.splitting import LibraryCall, compute_size_classes
from advisor.trace.causes import NAMED_KINDS
from advisor.trace.events import Role

if TYPE_CHECKING:
    from advisor.trace.callpaths.records import CallPaths
    from advisor.trace.callpaths.tree import CutTree, RegionRows

_MOST_UNNAMED: Final = 0.5
#: The categories of a call's seconds, and the measures they are in.
_MEASURES: Final = (("transfer", "transfer_s"), ("wait", "wait_s"), ("sync", "sync_s"), ("io", "io_s"))
_COLLECTIVES: Final = (Role.ALL_TO_ALL, Role.ONE_TO_ALL, Role.ALL_TO_ONE, Role.SCAN)


def collect_causes(paths: CallPaths, tree: CutTree, rows: RegionRows, calls: Sequence[LibraryCall]) -> Causes | None:
    """Return one row for each call path, processor and category with seconds; partners and files are not known.

    None where most of the communication is in calls without a name: then what waits for what is unknown.
    """
    if not calls or _compute_unnamed_share(paths, calls) > _MOST_UNNAMED:
        return None
    cells = [
        _nonzero_cells(number, call, category, measure)
        for number, call in enumerate(calls)
        for category, measure in _MEASURES
    ]
    which = np.concatenate([cell[0] for cell in cells])
    processor = np.concatenate([cell[1] for cell in cells])
    category = np.concatenate([cell[2] for cell in cells])
    seconds = np.concatenate([cell[3] for cell in cells])
    node = np.array([call.node for call in calls], dtype=np.int64)[which]
    nothing = np.full(len(which), -1)
    visits = np.ones(len(which)) if tree.visits is None else tree.visits[node, processor]
    moved = np.zeros(len(which)) if tree.bytes is None else tree.bytes[node, processor]
    return Causes(
        kinds=NAMED_KINDS,
        targets=(),
        category=category,
        kind=_cause_kinds(calls, which, category),
        phase=np.zeros(len(which), dtype=np.int64),
        call=rows.rows_of_cells(node, processor),
        caller=rows.rows_of_cells(tree.caller[node], processor),
        processor=processor,
        partner=nothing,
        target=nothing,
        size_class=compute_size_classes(paths, tree, node),
        seconds=seconds,
        count=visits.astype(np.int64),
        bytes=moved.astype(np.int64),
    )


def _compute_unnamed_share(paths: CallPaths, calls: Sequence[LibraryCall]) -> float:
    """Return the share of the seconds of communication in calls that the tool did not tell apart."""
    seconds = [float(call.wait_s.sum() + call.sync_s.sum() + call.transfer_s.sum()) for call in calls]
    unnamed = [
        share
        for share, call in zip(seconds, calls, strict=True)
        if call.role == Role.COMM_OTHER and not paths.nodes[call.node].name.startswith("MPI_")
    ]
    return sum(unnamed) / sum(seconds) if sum(seconds) else 0.0


def _nonzero_cells(
    number: int, call: LibraryCall, category: str, measure: str
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Return the cells of one call and category with seconds: its number, the processors, the category, the seconds."""
    values: FloatArray = getattr(call, measure)
    some = np.flatnonzero(values)
    return np.full(len(some), number), some, np.full(len(some), CAUSE_CATEGORIES.index(category)), values[some]


def _cause_kinds(calls: Sequence[LibraryCall], which: IntArray, category: IntArray) -> IntArray:
    """Return why the calls wait, and of other seconds what sort of call they are."""
    table = np.array(
        [[NAMED_KINDS.index(_cause_kind(call, name)) for name, _ in _MEASURES] for call in calls], dtype=np.int64
    )
    order = {CAUSE_CATEGORIES.index(name): place for place, (name, _) in enumerate(_MEASURES)}
    place = np.array([order.get(number, 0) for number in range(len(CAUSE_CATEGORIES))])
    found: IntArray = table[which, place[category]]
    return found


def _cause_kind(call: LibraryCall, category: str) -> str:
    if category == "wait":
        return call.kind
    if category == "transfer":
        return "collective" if call.role in _COLLECTIVES else "message"
    if category == "io":
        return "file"
    return {Role.OMP_BARRIER: "thread barrier", Role.OMP_LOCK: "lock", Role.BARRIER: "barrier"}.get(
        call.role, "thread start"
    )
