"""Why processors communicate, wait, synchronize and do I/O: equal calls added up into one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, Causes, FloatArray, IntArray
from advisor.support.grouping import sum_by_group
from advisor.trace.counts import count_repeats, sum_call_bytes
from advisor.trace.events import COMMUNICATING, Kind, Role, Trace
from advisor.trace.matching import COLLECTIVE_ROLES
from advisor.trace.meetings import are_set_up
from advisor.trace.nesting import Calls, are_task_waits, roles_of_regions, select_recorded
from advisor.trace.waits import KINDS, WaitTimes

if TYPE_CHECKING:
    from advisor.trace.categories import CategorySeconds
    from advisor.trace.tables import CellLayout

#: Kinds of seconds that are no waiting, behind those of ``waits.KINDS``.
OTHER_KINDS = ("message", "thread start", "file", "start-up", "shutdown")
NAMED_KINDS = KINDS + OTHER_KINDS

COLUMNS = ("category", "kind", "phase", "call", "caller", "processor", "partner", "target", "size_class")


#: Which seconds of a call belong to which category.
SOURCES = (
    ("transfer", "transfer_s"),
    ("wait", "wait_s"),
    ("sync", "sync_s"),
    ("io", "io_s"),
    ("outside", "start_up_s"),
    ("outside", "shutdown_s"),
)
#: The kind of waiting of calls that do the program's own work: for the threads that they started.
TEAM_WAIT = NAMED_KINDS.index("thread barrier")


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
    return _collect_by_loop(source) if compiled else _collect_by_columns(source)


def _collect_by_columns(source: CauseSource) -> Causes:
    """Return the causes from the columns of all rows."""
    calls, waiting, split = source.calls, source.waiting, source.split
    entries = [np.flatnonzero(getattr(split, measure)) for _, measure in SOURCES]
    entry, edges = np.concatenate(entries), np.cumsum([0, *map(len, entries)])
    seconds, often = np.empty(len(entry)), count_repeats(source.trace, calls.enter[split.call[entry]])
    keys = _build_key_columns(source, entry)
    kinds = _kinds_of_regions(source.trace)
    for number, ((category, measure), low, high) in enumerate(zip(SOURCES, edges[:-1], edges[1:], strict=True)):
        mine = entry[low:high]
        call = split.call[mine]
        seconds[low:high] = getattr(split, measure)[mine]
        keys[0, low:high] = CAUSE_CATEGORIES.index(category)
        keys[1, low:high] = kinds[number, calls.region[call]]
        if category == "outside":
            keys[2, low:high] = -1
        if category == "wait":
            keys[1, low:high] = np.where(calls.anchor[call] < 0, TEAM_WAIT, waiting.kind[call])
            keys[6, low:high] = waiting.partner[call]
        if category == "sync":
            often[low:high] *= np.maximum(split.teams[mine], 1)
    total = source.size[split.call[entry]].clip(0).astype(np.float64)
    return _merge_equal_rows(source.trace.files, keys, seconds, often, total)


def _collect_by_loop(source: CauseSource) -> Causes:
    """Return what ``_collect_by_columns`` does, by a compiled loop."""
    from advisor.trace import compiled_cause_loop

    trace, calls, split, table = source.trace, source.calls, source.split, source.table
    category = np.array([CAUSE_CATEGORIES.index(name) for name, _ in SOURCES])
    keys, *sums = compiled_cause_loop.collect_causes(
        (category, _kinds_of_regions(trace), CAUSE_CATEGORIES.index("outside"), CAUSE_CATEGORIES.index("sync")),
        tuple(getattr(split, measure) for _, measure in SOURCES),
        (split.call, split.instance, split.teams, table.phase_of),
        (calls.region, calls.parent, calls.anchor, calls.location, calls.enter, table.row_of_call),
        (source.waiting.kind, source.waiting.partner, source.target, source.size, trace.tag),
        TEAM_WAIT,
    )
    order = np.lexsort(keys[::-1])
    return _make_causes(trace.files, keys[:, order], *(each[order] for each in sums))


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
    targets: tuple[str, ...], keys: IntArray, seconds: FloatArray, often: FloatArray, total: FloatArray
) -> Causes:
    first, group = _group_columns(keys)
    return _make_causes(
        targets, keys[:, first], *(sum_by_group(group, each, len(first)) for each in (seconds, often, total))
    )


def _make_causes(
    targets: tuple[str, ...], keys: IntArray, seconds: FloatArray, often: FloatArray, total: FloatArray
) -> Causes:
    columns = dict(zip(COLUMNS, keys, strict=True))
    return Causes(
        kinds=NAMED_KINDS,
        targets=targets,
        **columns,
        seconds=seconds,
        count=often.astype(np.int64),
        bytes=total.astype(np.int64),
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


def _kinds_of_regions(trace: Trace) -> IntArray:
    """Return (sources, regions) why calls of a region spend the seconds of each source; -1 for waiting calls."""
    role = roles_of_regions(trace)
    kinds = dict.fromkeys([measure for _, measure in SOURCES], np.full(len(role), -1))
    joint = np.isin(role, COLLECTIVE_ROLES) & ~are_set_up(trace)
    kinds["transfer_s"] = np.where(joint, NAMED_KINDS.index("collective"), NAMED_KINDS.index("message"))
    named = {Role.BARRIER: "barrier", Role.OMP_BARRIER: "thread barrier", Role.OMP_LOCK: "lock"}
    synchronizing = np.full(len(role), NAMED_KINDS.index("thread start"))
    for each, name in named.items():
        synchronizing[role == each] = NAMED_KINDS.index(name)
    kinds["sync_s"] = np.where(are_task_waits(trace), NAMED_KINDS.index("tasks"), synchronizing)
    for measure, name in (("io_s", "file"), ("start_up_s", "start-up"), ("shutdown_s", "shutdown")):
        kinds[measure] = np.full(len(role), NAMED_KINDS.index(name))
    return np.stack(list(kinds.values()))


def _bytes_and_targets(trace: Trace, calls: Calls) -> tuple[IntArray, IntArray]:
    """Return the bytes of each call (-1 unknown) and the file it works on (-1 none)."""
    size = sum_call_bytes(trace, calls, (*COMMUNICATING, Kind.IO))
    target = np.full(len(size), -1, dtype=np.int64)
    files, call = select_recorded(calls, Kind.IO)
    target[call] = trace.partner[files]
    return size, target


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
