"""Recorded I/O calls -> a Profile: what traces of file access have in common.

A reader fills ``IoEvents``; own seconds of nested calls, patterns of access, and the tables of causes and counts are
made here, as Darshan's reader makes them of counters (``docs/formats/darshan.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.records import CAUSE_CATEGORIES, SMALL_IO_B, Causes, Note, Phase, Profile, Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from advisor.model.records import FloatArray, IntArray, Processor

#: What calls do; regions are called ``POSIX read``, ``MPI-IO collective write`` and so on.
READ, WRITE, METADATA, SYNC = "read", "write", "metadata", "sync"
#: A pause of this share of the run, and at least so many seconds, ends a burst.
PAUSE_SHARE: Final = 0.01
PAUSE_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class IoEvents:
    """Calls in any order; all columns (n,).

    ``processor``, ``call`` and ``file`` (-1: none) are indices; ``start_s`` and ``end_s`` are on one clock; ``bytes``
    is -1 where a call moves none, ``offset`` -1 where it is unknown.
    """

    processor: IntArray
    call: IntArray
    file: IntArray
    start_s: FloatArray
    end_s: FloatArray
    bytes: IntArray
    offset: IntArray

    def __len__(self) -> int:
        return len(self.call)


@dataclass(frozen=True, slots=True)
class IoRun:
    """What the calls are of: ``calls`` and ``files`` are names, ``span_s`` (2,) is begin and end on their clock."""

    program: str
    run: str
    reader: str
    processors: tuple[Processor, ...]
    calls: Sequence[str]
    files: Sequence[str]
    span_s: tuple[float, float]
    started: str | None = None
    paradigms: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def build_io_profile(run: IoRun, events: IoEvents) -> Profile:
    """Return the run with the seconds of each call on each processor; the rest of the run is one region."""
    order = np.lexsort((-events.end_s, events.start_s, events.processor))
    events = IoEvents(*(getattr(events, name)[order] for name in IoEvents.__slots__))
    own_s, outer = _compute_own_seconds(events)
    moved = np.where(outer, -1, events.bytes)  # what a call does by way of others is counted there
    regions = (Region(run.program), *(Region(name) for name in run.calls))
    actual_s = max(run.span_s[1] - run.span_s[0], 0.0)
    io_s = np.zeros((len(regions), len(run.processors)))
    np.add.at(io_s, (events.call + 1, events.processor), own_s)
    wall_s = io_s.copy()
    wall_s[0] = np.maximum(actual_s - io_s.sum(axis=0), 0.0)
    arrays = {"wall_s": wall_s[:, :, None], "io_s": io_s[:, :, None]}
    return Profile(
        program=run.program,
        run=run.run,
        reader=run.reader,
        actual_s=actual_s,
        processors=run.processors,
        regions=regions,
        phases=(Phase("the whole run", "whole", np.arange(len(regions)), arrays),),
        status={"wall_s": "measured", "io_s": "measured"},
        started=run.started,
        paradigms=run.paradigms,
        counts=_count_patterns(run, events, own_s, moved, actual_s, io_s.shape),
        causes=_build_causes(run, events, own_s, moved),
        notes=run.notes,
    )


def _compute_own_seconds(events: IoEvents) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return seconds less those of calls inside, and which calls have others inside that move bytes."""
    own_s = events.end_s - events.start_s
    outer = np.zeros(len(events), dtype=bool)
    open_calls: list[int] = []
    columns = (events.processor.tolist(), events.start_s.tolist(), events.end_s.tolist(), events.bytes.tolist())
    processors, _, ends, sizes = columns
    for n, (processor, start, end, size) in enumerate(zip(*columns, strict=True)):
        while open_calls and (processors[open_calls[-1]] != processor or ends[open_calls[-1]] <= start):
            open_calls.pop()
        if open_calls:
            around = open_calls[-1]
            own_s[around] -= min(end, ends[around]) - start
            if size >= 0:
                outer[[each for each in open_calls if sizes[each] >= 0]] = True
        open_calls.append(n)
    return np.maximum(own_s, 0.0), outer


def _count_patterns(
    run: IoRun, events: IoEvents, own_s: FloatArray, moved: IntArray, actual_s: float, shape: tuple[int, ...]
) -> dict[str, FloatArray]:
    """Return what is counted by region and processor: calls, operations, bytes, and patterns with their seconds."""
    data = moved >= 0
    is_write = np.array([name.split(" ")[-1] == WRITE for name in run.calls], dtype=bool)[events.call]
    random = _find_random(events, data, is_write)
    switches = _find_switches(events, data, is_write)
    reread = _compute_reread_shares(events, moved, is_write)
    columns = {
        "calls": np.ones(len(events)),
        "io_bytes": np.maximum(moved, 0),
        "io_operations": data,
        "io_small_operations": data & (moved <= SMALL_IO_B),
        "io_random_operations": random,
        "io_random_s": own_s * random,
        "io_switches": switches,
        "io_switch_s": own_s * switches,
        "io_reread_bytes": np.maximum(moved, 0) * reread,
        "io_reread_s": own_s * reread,
    }
    found = {name: np.zeros(shape) for name in (*columns, "io_bursts")}
    for name, column in columns.items():
        np.add.at(found[name], (events.call + 1, events.processor), column)
    found["io_bursts"][0] = _count_bursts(events, data, actual_s, shape[1])
    return found


def _mark_followers(keys: tuple[IntArray, ...], chosen: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the chosen events by ``keys`` (the first decides) and time, and which follow one of the same keys."""
    order = chosen[np.lexsort([chosen, *(key[chosen] for key in reversed(keys))])]
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    return order, np.concatenate(([False], same))[: len(order)]


def _find_random(
    events: IoEvents, data: npt.NDArray[np.bool_], is_write: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which operations begin before the end of the one before, of the same processor, file and kind."""
    known = np.flatnonzero(data & (events.offset >= 0) & (events.file >= 0))
    order, follows = _mark_followers((events.processor, events.file, is_write.astype(np.int64)), known)
    end = np.concatenate(([0], (events.offset + events.bytes)[order][:-1]))[: len(order)]
    found = np.zeros(len(events), dtype=bool)
    found[order] = follows & (events.offset[order] < end)
    return found


def _find_switches(
    events: IoEvents, data: npt.NDArray[np.bool_], is_write: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which operations follow one of the other kind in the same file; the first turn of each is none."""
    order, follows = _mark_followers((events.processor, events.file), np.flatnonzero(data & (events.file >= 0)))
    kind = is_write[order]
    turns = follows & (kind != np.concatenate(([False], kind[:-1]))[: len(kind)])
    count = np.cumsum(turns)
    before = np.maximum.accumulate(np.where(follows, 0, count - turns)) if len(count) else count
    found = np.zeros(len(events), dtype=bool)
    found[order] = turns & (count - before > 1)
    return found


def _compute_reread_shares(events: IoEvents, moved: IntArray, is_write: npt.NDArray[np.bool_]) -> FloatArray:
    """Return which part of the bytes of each read was read before, by any processor: the same for all of a file.

    Files that are written as well, and those whose offsets are not known, have none.
    """
    found = np.zeros(len(events))
    data = (moved >= 0) & (events.file >= 0)
    files = int(events.file.max(initial=-1)) + 1
    reads = np.flatnonzero(data & ~is_write)
    total = np.bincount(events.file[reads], moved[reads].astype(np.float64), files)
    extent = np.zeros(files)
    np.maximum.at(extent, events.file[reads], (events.offset + moved)[reads])
    left_out = np.zeros(files, dtype=bool)
    left_out[events.file[data & is_write]] = True
    left_out[events.file[reads[events.offset[reads] < 0]]] = True
    share = np.where(left_out, 0.0, np.divide(total - extent, total, out=np.zeros(files), where=total > 0))
    found[reads] = np.maximum(share, 0.0)[events.file[reads]]
    return found


def _count_bursts(events: IoEvents, data: npt.NDArray[np.bool_], actual_s: float, processors: int) -> FloatArray:
    """Return how often each processor (Q,) reads or writes with a pause before."""
    order, follows = _mark_followers((events.processor,), np.flatnonzero(data))
    end = np.concatenate(([0.0], events.end_s[order][:-1]))[: len(order)]
    pause = max(PAUSE_SHARE * actual_s, PAUSE_S)
    begins = ~follows | (events.start_s[order] - end >= pause)
    return np.bincount(events.processor[order], begins, processors).astype(np.float64)


def _build_causes(run: IoRun, events: IoEvents, own_s: FloatArray, moved: IntArray) -> Causes:
    """Return a row for each processor, call, file and class of size."""
    size = np.where(moved < 0, -1, np.ceil(np.log2(np.maximum(moved, 0) + 1.0))).astype(np.int64)
    keys, row = np.unique(np.stack((events.processor, events.call, events.file, size)), axis=1, return_inverse=True)
    n = keys.shape[1]
    none = np.full(n, -1)
    counted = (events.bytes < 0) | (moved >= 0)
    return Causes(
        kinds=("file",),
        targets=tuple(run.files),
        category=np.full(n, CAUSE_CATEGORIES.index("io")),
        kind=np.zeros(n, dtype=np.int64),
        phase=np.zeros(n, dtype=np.int64),
        call=keys[1] + 1,
        caller=none,
        processor=keys[0],
        partner=none,
        target=keys[2],
        size_class=keys[3],
        seconds=np.bincount(row, own_s, n).astype(np.float64),
        count=np.bincount(row, counted, n).astype(np.int64),
        bytes=np.bincount(row, np.maximum(moved, 0), n).astype(np.int64),
    )
