"""Why processors communicate, wait, synchronize and do I/O: equal calls added up into one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, Causes
from advisor.support.grouping import sum_by_group
from advisor.trace.counts import count_repeats, sum_call_bytes
from advisor.trace.events import COMMUNICATING, Kind, Role
from advisor.trace.matching import COLLECTIVE_ROLES
from advisor.trace.nesting import are_task_waits, have_roles, roles_of_regions, select_recorded
from advisor.trace.waits import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.model.records import FloatArray, IntArray
    from advisor.trace.categories import CategorySeconds
    from advisor.trace.events import Trace
    from advisor.trace.nesting import Calls
    from advisor.trace.tables import CellLayout
    from advisor.trace.waits import WaitTimes

#: Kinds of seconds that are no waiting, behind those of ``waits.KINDS``.
OTHER_KINDS = ("message", "thread start", "file", "start-up", "shutdown")
NAMED_KINDS = KINDS + OTHER_KINDS

COLUMNS = ("category", "kind", "phase", "call", "caller", "processor", "partner", "target", "size_class")


#: Which seconds of a call belong to which category, and the kind where one says it all.
SOURCES = (
    ("transfer", "transfer_s", None),
    ("wait", "wait_s", None),
    ("sync", "sync_s", None),
    ("io", "io_s", "file"),
    ("outside", "start_up_s", "start-up"),
    ("outside", "shutdown_s", "shutdown"),
)


@dataclass(frozen=True, slots=True)
class CauseSource:
    """The inputs of the rows."""

    trace: Trace
    calls: Calls
    waiting: WaitTimes
    split: CategorySeconds
    table: CellLayout
    size: IntArray
    target: IntArray


def collect_causes(
    trace: Trace, calls: Calls, waiting: WaitTimes, split: CategorySeconds, table: CellLayout, *, compiled: bool = False
) -> Causes:
    """Return the causes of all seconds of the phases that are no computation, and of those in no phase.

    ``compiled`` says whether equal ones are found by a compiled loop.
    """
    source = CauseSource(trace, calls, waiting, split, table, *_bytes_and_targets(trace, calls))
    entries = [np.flatnonzero(getattr(split, measure)) for _, measure, _ in SOURCES]
    entry, edges = np.concatenate(entries), np.cumsum([0, *map(len, entries)])
    seconds, often = np.empty(len(entry)), count_repeats(trace, calls.enter[split.call[entry]])
    keys = _build_key_columns(source, entry)
    for (category, measure, kind), low, high in zip(SOURCES, edges[:-1], edges[1:], strict=True):
        mine = entry[low:high]
        seconds[low:high] = getattr(split, measure)[mine]
        keys[0, low:high] = CAUSE_CATEGORIES.index(category)
        keys[1, low:high] = NAMED_KINDS.index(kind) if kind else _cause_kinds(source, split.call[mine], category)
        if category == "outside":
            keys[2, low:high] = -1
        if category == "wait":
            keys[6, low:high] = waiting.partner[split.call[mine]]
        if category == "sync":
            often[low:high] *= np.maximum(split.teams[mine], 1)
    total = source.size[split.call[entry]].clip(0).astype(np.float64)
    return _merge_equal_rows(trace.files, keys, seconds, often, total, compiled=compiled)


def merge_causes(parts: Sequence[Causes], places: Sequence[IntArray]) -> Causes:
    """Return the causes of several parts of a run; ``places`` are the rows of the whole for those of each part."""
    keys = []
    for part, place in zip(parts, places, strict=True):
        moved = np.r_[place, -1]
        columns = {name: getattr(part, name) for name in COLUMNS}
        columns |= {"call": moved[part.call], "caller": moved[part.caller]}
        keys.append(np.stack([columns[name] for name in COLUMNS]))
    added = (np.concatenate([getattr(part, name) for part in parts]) for name in ("seconds", "count", "bytes"))
    return _merge_equal_rows(
        parts[0].targets, np.concatenate(keys, axis=1), *(each.astype(np.float64) for each in added)
    )


def _merge_equal_rows(
    targets: tuple[str, ...],
    keys: IntArray,
    seconds: FloatArray,
    often: FloatArray,
    total: FloatArray,
    *,
    compiled: bool = False,
) -> Causes:
    """Return rows with equal keys as one."""
    first, group = (_group_by_loop if compiled else _group_columns)(keys)
    chosen = {name: keys[place, first] for place, name in enumerate(COLUMNS)}
    return Causes(
        kinds=NAMED_KINDS,
        targets=targets,
        **chosen,
        seconds=sum_by_group(group, seconds, len(first)),
        count=sum_by_group(group, often, len(first)).astype(np.int64),
        bytes=sum_by_group(group, total, len(first)).astype(np.int64),
    )


def _build_key_columns(source: CauseSource, entry: IntArray) -> IntArray:
    """Return the key columns (9, n) of some entries in the order of ``COLUMNS``, but category, kind and partner."""
    calls, split, row_of_call = source.calls, source.split, source.table.row_of_call
    call = split.call[entry]
    parent = calls.parent[call]
    keys = np.full((len(COLUMNS), len(entry)), -1, dtype=np.int64)
    keys[2] = source.table.phase_of[split.instance[entry]]
    keys[3] = row_of_call[call]
    keys[4] = np.where(parent >= 0, row_of_call[parent], -1)
    keys[5] = calls.location[call]
    keys[7] = source.target[call]
    size = source.size[call]
    keys[8] = np.where(size < 0, -1, np.frexp(size.clip(1).astype(np.float64))[1])
    return keys


def _cause_kinds(source: CauseSource, call: IntArray, category: str) -> IntArray:
    """Return why a call waits, and of other seconds what sort of call they are."""
    if category == "wait":
        working = source.calls.anchor[call] < 0
        return np.where(working, NAMED_KINDS.index("thread barrier"), source.waiting.kind[call])
    role = roles_of_regions(source.trace)[source.calls.region[call]]
    if category == "transfer":
        joint = have_roles(source.trace, source.calls.region[call], COLLECTIVE_ROLES)
        return np.where(joint, NAMED_KINDS.index("collective"), NAMED_KINDS.index("message"))
    barrier = np.where(role == Role.BARRIER, NAMED_KINDS.index("barrier"), NAMED_KINDS.index("thread start"))
    barrier = np.where(role == Role.OMP_BARRIER, NAMED_KINDS.index("thread barrier"), barrier)
    locks = np.where(role == Role.OMP_LOCK, NAMED_KINDS.index("lock"), barrier)
    return np.where(are_task_waits(source.trace)[source.calls.region[call]], NAMED_KINDS.index("tasks"), locks)


def _bytes_and_targets(trace: Trace, calls: Calls) -> tuple[IntArray, IntArray]:
    """Return the bytes of each call (-1 unknown) and the file it works on (-1 none)."""
    size = sum_call_bytes(trace, calls, (*COMMUNICATING, Kind.IO))
    target = np.full(len(size), -1, dtype=np.int64)
    files, call = select_recorded(calls, Kind.IO)
    target[call] = trace.partner[files]
    return size, target


def _group_by_loop(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return what ``_group_columns`` does, by a compiled loop over the columns; only the groups are sorted."""
    from advisor.trace import compiled_key_loops

    found = np.empty(keys.shape[1], dtype=np.int64)
    first = compiled_key_loops.group_columns(keys, found)
    order = np.lexsort(keys[::-1, first])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[found]


def _group_columns(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return for equal columns of ``keys`` the first of each group, in their order, and the group of each column."""
    if not keys.shape[1]:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    number = np.zeros(keys.shape[1], dtype=np.int64)
    for row in keys:
        low, width = int(row.min()), int(row.max()) - int(row.min()) + 1
        if int(number.max()) >= (2**62) // width:
            number = np.unique(number, return_inverse=True)[1].astype(np.int64)
        number = number * width + (row - low)
    _, first, group = np.unique(number, return_index=True, return_inverse=True)
    return first.astype(np.int64), group.astype(np.int64)
