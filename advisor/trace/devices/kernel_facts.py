"""How well kernels fill a device, by grids, occupancy and streams: facts, and what filling it would win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.events import Activity, CallRole, DeviceTrace, find_previous_in_stream
from advisor.trace.devices.intervals import merge_intervals
from advisor.trace.devices.naming import match_names

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray

#: A kernel with fewer blocks than multiprocessors leaves some of them without any.
FULL_PPM: Final = 1_000_000
#: Below this share of the warps that fit, the latency of memory is hard to hide.
LOW_OCCUPANCY_PPM: Final = 250_000
#: A stream with less of the kernels' seconds does not count as one of several.
_STREAM_SHARE: Final = 0.05
#: Facts of grids are told where they are known for this share of the kernels' seconds.
_KNOWN: Final = 0.9


def compute_kernel_facts(trace: DeviceTrace) -> dict[str, float]:
    """Return facts on grids, occupancy, spilling, streams and graphs, as far as the trace tells them."""
    acts = trace.activities
    kernels = np.flatnonzero(acts.kind == Activity.COMPUTE)
    length = acts.end_s[kernels] - acts.start_s[kernels]
    if not length.sum() > 0:
        return {}
    found: dict[str, float] = {}
    fill, occupancy, local = acts.fill_ppm[kernels], acts.occupancy_ppm[kernels], acts.local_bytes[kernels]
    small = (fill >= 0) & (fill < FULL_PPM)
    found |= _share_of_known("small_grid_share", small, fill >= 0, length)
    low = (occupancy >= 0) & (occupancy < LOW_OCCUPANCY_PPM) & ~small
    found |= _share_of_known("low_occupancy_share", low, occupancy >= 0, length)
    found |= _share_of_known("spill_share", local > 0, local >= 0, length)
    found["longest_kernel_share"] = float(length.max() / length.sum())
    found |= _stream_facts(trace, kernels, length)
    linked = acts.call[kernels] >= 0
    if linked.any():
        in_graph = match_names(trace, "GraphLaunch")[trace.calls.name[acts.call[kernels[linked]]]]
        found["graph_kernel_share"] = float(in_graph.mean())
    return found


def _share_of_known(name: str, some: BoolArray, known: BoolArray, length: FloatArray) -> dict[str, float]:
    total, seconds = float(length.sum()), float(length[known].sum())
    return {name: float(length[some].sum()) / seconds} if seconds >= _KNOWN * total else {}


def _stream_facts(trace: DeviceTrace, kernels: IntArray, length: FloatArray) -> dict[str, float]:
    """Return how many streams compute (the most of any device), and how much of the computing time two or more do."""
    acts = trace.activities
    streams, busy, together = 0, 0.0, 0.0
    for device in range(len(trace.devices)):
        mine = acts.device[kernels] == device
        if not mine.any():
            continue
        seconds = np.bincount(acts.stream[kernels[mine]], weights=length[mine])
        streams = max(streams, int((seconds >= _STREAM_SHARE * seconds.sum()).sum()))
        start, end = acts.start_s[kernels[mine]], acts.end_s[kernels[mine]]
        edges = np.r_[start, end]
        order = np.argsort(edges, kind="stable")
        running = np.cumsum(np.r_[np.ones(len(start)), -np.ones(len(end))][order])
        spans = np.diff(edges[order])
        busy += float(spans[running[:-1] >= 1].sum())
        together += float(spans[running[:-1] >= 2].sum())
    return {"compute_streams": float(streams), "concurrent_share": together / busy if busy > 0 else 0.0}


def measure_loading(trace: DeviceTrace) -> float:
    """Return the seconds of start-up calls, those that overlap counted once, a mean over the processes."""
    calls = trace.calls
    mine = np.flatnonzero(calls.role == CallRole.START)
    if not len(mine):
        return 0.0
    rank = trace.thread_ranks[calls.thread[mine]]
    ranks = {device.rank for device in trace.devices}
    parts = (mine[rank == each] for each in ranks)
    return sum(merge_intervals(calls.start_s[part], calls.end_s[part]).length_s for part in parts) / len(ranks)


def find_fusible(trace: DeviceTrace, simple: BoolArray) -> BoolArray:
    """Return which activities are kernels that could be part of the one before: both have names in ``simple``.

    They change each element of an array, one directly behind the other in a stream.
    """
    acts = trace.activities
    previous = find_previous_in_stream(acts)
    plain: BoolArray = simple[acts.name] & (acts.kind == Activity.COMPUTE)
    return plain & (previous >= 0) & plain[previous]


def estimate_losses(trace: DeviceTrace, plain: BoolArray, simple: BoolArray) -> FloatArray | None:
    """Return the seconds that each activity would save if it filled its device; None where grids are unknown.

    A kernel with fewer blocks than multiprocessors leaves the others idle. Half is taken for loss of those that
    multiply matrices without matrix units (names in ``plain``), and of those that could be part of the kernel before.
    """
    acts = trace.activities
    kernels = acts.kind == Activity.COMPUTE
    length = np.where(kernels, acts.end_s - acts.start_s, 0.0)
    if not length[acts.fill_ppm >= 0].sum() >= _KNOWN * length.sum() > 0:
        return None
    use = np.where((acts.fill_ppm >= 0) & (acts.fill_ppm < FULL_PPM), acts.fill_ppm / FULL_PPM, 1.0)
    use = np.where(plain[acts.name] | find_fusible(trace, simple), np.minimum(use, 0.5), use)
    return np.asarray(length * (1.0 - use))
