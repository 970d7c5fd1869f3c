"""The run over time for a picture: what hosts, devices, streams and the network did in equal spans of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.devices import DeviceTimeline
from advisor.trace.devices.account import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    DATA,
    HOST,
    IMBALANCE,
    LAUNCHES,
    LEVELS,
    STARTUP,
    SYNCHRONIZATIONS,
    TimePieces,
)
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace
from advisor.trace.devices.intervals import merge_intervals

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray

#: Rows in a picture, spans of time at most, and cells of both.
ROWS: Final = 64
SPANS: Final = 400
_CELLS: Final = 10_000
#: Streams of a device that have rows of their own: those with the most seconds.
_STREAMS: Final = 3
_LEVEL_OF_CALL: Final = {
    CallRole.SYNCHRONIZE: SYNCHRONIZATIONS, CallRole.LAUNCH: LAUNCHES, CallRole.COPY: COPIES, CallRole.ALLOCATE: HOST,
    CallRole.RUNTIME: LAUNCHES, CallRole.START: STARTUP, CallRole.COMMUNICATE: COMMUNICATION,
    CallRole.INPUT_OUTPUT: DATA, CallRole.LOAD_DATA: DATA, CallRole.WORK: HOST,
}  # fmt: skip
_LEVEL_OF_ACTIVITY: Final = {
    Activity.COMPUTE: COMPUTE, Activity.COMMUNICATION: COMMUNICATION, Activity.COPY: COPIES,
}  # fmt: skip


def build_device_timeline(trace: DeviceTrace, pieces: TimePieces, waiting_until_s: FloatArray) -> DeviceTimeline:
    """Return rows of seconds by level: of each rank its host, of each device its levels, streams and communications.

    Where that is more than ``ROWS``, the devices alone; of more devices neighbours are averaged.
    """
    detailed = _count_rows(trace) <= ROWS
    step = 1 if detailed else -(-len(trace.devices) // ROWS)
    rows = _count_rows(trace) if detailed else -(-len(trace.devices) // step)
    edges = np.linspace(trace.begin_s, trace.end_s, max(min(SPANS, _CELLS // max(rows, 1)), 2) + 1)
    if detailed:
        names, cells = zip(*_iterate_rows(trace, pieces, waiting_until_s, edges), strict=True)
        return DeviceTimeline(tuple(names), 1, LEVELS, edges, np.stack(cells))
    devices = np.stack([_sum_levels(pieces, pieces.device == number, edges) for number in range(len(trace.devices))])
    firsts = np.arange(0, len(devices), step)
    counts = np.diff([*firsts, len(devices)])
    means = np.add.reduceat(devices, firsts, axis=0) / counts[:, None, None]
    return DeviceTimeline(tuple(trace.devices[first].name for first in firsts), step, LEVELS, edges, means)


def _count_rows(trace: DeviceTrace) -> int:
    """Return how many rows hosts, devices, streams and communications take."""
    acts = trace.activities
    streams = np.unique(np.stack([acts.device, acts.stream]), axis=1)
    shown = np.minimum(np.bincount(streams[0], minlength=len(trace.devices)), _STREAMS)
    sends = len(np.unique(acts.device[acts.kind == Activity.COMMUNICATION]))
    hosts = trace.rank_count if len(trace.calls.start_s) else 0
    return hosts + len(trace.devices) + int(shown[shown > 1].sum()) + sends


def _iterate_rows(
    trace: DeviceTrace, pieces: TimePieces, waiting_until_s: FloatArray, edges: FloatArray
) -> Iterator[tuple[str, FloatArray]]:
    shown: set[int] = set()
    for number, device in enumerate(trace.devices):
        if device.rank not in shown and len(trace.calls.start_s):
            shown.add(device.rank)
            yield f"rank {device.rank} host", _sum_calls(trace, device.rank, edges)
        yield device.name, _sum_levels(pieces, pieces.device == number, edges)
        yield from _iterate_streams(trace, number, edges)
        row = _sum_communications(trace, number, waiting_until_s, edges)
        if row.any():
            yield f"{device.name}: network", row


def _iterate_streams(trace: DeviceTrace, device: int, edges: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield the streams of a device that has several, those with the most seconds, in the order of their numbers."""
    acts = trace.activities
    mine = np.flatnonzero(acts.device == device)
    length = np.bincount(acts.stream[mine], weights=(acts.end_s - acts.start_s)[mine]) if len(mine) else np.zeros(0)
    used = np.flatnonzero(length > 0)
    for stream in np.sort(used[np.argsort(-length[used], kind="stable")][:_STREAMS]).tolist() if len(used) > 1 else ():
        row = np.zeros((len(edges) - 1, len(LEVELS)))
        before = np.zeros(len(edges) - 1)
        for some, level in _widen(trace, (acts.device == device) & (acts.stream == stream)):
            covered = _bin_seconds(acts.start_s[some], acts.end_s[some], edges)
            row[:, level] += np.maximum(covered - before, 0.0)
            before = covered
        yield f"{trace.devices[device].name}: stream {stream}", row


def _widen(trace: DeviceTrace, mine: BoolArray) -> Iterator[tuple[BoolArray, int]]:
    """Yield the activities of the first kind, of the first two, and so on: what comes first counts."""
    so_far = np.zeros(len(mine), dtype=bool)
    for kind, level in _LEVEL_OF_ACTIVITY.items():
        so_far = so_far | (mine & (trace.activities.kind == kind))
        yield so_far, level


def _sum_levels(pieces: TimePieces, mine: BoolArray, edges: FloatArray) -> FloatArray:
    row = np.zeros((len(edges) - 1, len(LEVELS)))
    for level in range(len(LEVELS)):
        some = mine & (pieces.level == level)
        if some.any():
            row[:, level] = _bin_seconds(pieces.start_s[some], pieces.end_s[some], edges)
    return row


def _sum_calls(trace: DeviceTrace, rank: int, edges: FloatArray) -> FloatArray:
    """Return what the thread with the most calls to the device did; of nested calls the first role counts."""
    calls = trace.calls
    threads = [number for number, thread in enumerate(trace.threads) if thread.rank == rank]
    mine = np.isin(calls.thread, threads)
    row = np.zeros((len(edges) - 1, len(LEVELS)))
    if not mine.any():
        return row
    feeding = mine & (calls.role != CallRole.WORK)
    busiest = np.bincount(calls.thread[feeding if feeding.any() else mine]).argmax()
    mine = mine & (calls.thread == busiest)
    so_far = np.zeros(len(mine), dtype=bool)
    before = np.zeros(len(edges) - 1)
    for role, level in _LEVEL_OF_CALL.items():
        some = mine & (calls.role == role)
        if some.any():
            so_far |= some
            covered = _bin_seconds(calls.start_s[so_far], calls.end_s[so_far], edges)
            row[:, level] += np.maximum(covered - before, 0.0)
            before = covered
    return row


def _sum_communications(trace: DeviceTrace, device: int, waiting_until_s: FloatArray, edges: FloatArray) -> FloatArray:
    """Return a device's communications, covered by computation or not: waiting for others, and moving data."""
    acts = trace.activities
    mine = np.flatnonzero((acts.device == device) & (acts.kind == Activity.COMMUNICATION))
    row = np.zeros((len(edges) - 1, len(LEVELS)))
    if len(mine):
        until = np.clip(waiting_until_s[mine], acts.start_s[mine], acts.end_s[mine])
        moving = _bin_seconds(until, acts.end_s[mine], edges)
        whole = _bin_seconds(acts.start_s[mine], acts.end_s[mine], edges)
        row[:, COMMUNICATION], row[:, IMBALANCE] = moving, np.maximum(whole - moving, 0.0)
    return row


def _bin_seconds(start_s: FloatArray, end_s: FloatArray, edges: FloatArray) -> FloatArray:
    """Return how many seconds of each span between two edges are in one of the intervals."""
    return np.diff(merge_intervals(start_s, end_s).cover_until(edges))
