"""Numbers on the use of devices that rules ask for (``device.*`` in docs/facts.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.collectives import find_waiting
from advisor.trace.devices.events import DEVICE_CALLS, Activity, CallRole, Direction
from advisor.trace.devices.intervals import merge_intervals
from advisor.trace.devices.kernel_facts import compute_kernel_facts, find_fusible, measure_loading
from advisor.trace.devices.naming import MANAGED, find_named_calls, match_names
from advisor.trace.devices.operator_facts import compute_operator_facts, measure_element_reads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.model.records import BoolArray, FloatArray
    from advisor.trace.devices.collectives import MatchedOperations
    from advisor.trace.devices.events import DeviceTrace

#: A kernel below this length takes about as long to launch.
SHORT_S: Final = 10e-6
#: A copy below this size costs mostly its latency.
SMALL_B: Final = 64 << 10
#: A communication below this size costs mostly its latency.
SMALL_MESSAGE_B: Final = 1 << 20
#: A copy or communication from this size on shows the bandwidth of its way.
LARGE_B: Final = 1 << 20
#: What a process takes to start under a profiler, before any of its own work: its libraries and the profiler's.
STARTED_S: Final = 0.2
#: The first call this long before any activity sets the device up; other calls return in microseconds.
SETUP_S: Final = 0.05
#: Facts that only the reader of a trace can count (``DeviceTraceBuilder.add_count``).
COUNTED: Final = ("page_faults", "processes_per_device")
_BETWEEN_TWO: Final = re.compile(r"send_?recv|_send|_recv|\bsend\b|\brecv\b|p2p", re.I)
#: Kernels of matrix units by their instructions; inputs of 8 and 4 bits, and bfloat16, have no others.
_TENSOR: Final = re.compile(
    r"tensorop|16816|1688|884|16832|hmma|imma|wgmma|wmma|xmma|mfma|_MI\d+x\d+|umma|nvjet|mma_atom|fp[48]|e4m3|e5m2"
    r"|bfloat16|bf16",
    re.I,
)
_DOUBLE: Final = re.compile(r"dgemm|zgemm|double|f64|_D_?B_|_DD?_B", re.I)
_MATRIX: Final = re.compile(r"gemm|Cijk|convolve|conv2d|cudnn.*conv|implicit_convolve|winograd", re.I)
_BY_ELEMENT: Final = re.compile(r"elementwise_kernel|CUDAFunctor|triton_poi_|\bpointwise", re.I)
_ELEMENTWISE: Final = re.compile(
    r"elementwise|reduce_kernel|layer_?norm|softmax|CatArrayBatchedCopy|foreach|multi_tensor_apply", re.I
)


def compute_device_facts(
    trace: DeviceTrace, seconds: Mapping[str, FloatArray], operations: MatchedOperations
) -> dict[str, float]:
    """Return the facts that the trace tells, without the prefix ``device.``."""
    facts = {"devices": float(len(trace.devices)), "busy_share": float(seconds["compute"].mean()) / trace.length_s}
    facts["on_host"] = float(any(device.is_host for device in trace.devices))
    facts["element_share"] = measure_element_reads(trace) / trace.length_s
    facts |= _kernel_facts(trace) | compute_kernel_facts(trace)
    if len(trace.calls.start_s):
        facts |= compute_operator_facts(trace)
        facts["loading_share"] = measure_loading(trace) / trace.length_s
        for name, waited_s in zip(("lead", "setup"), _measure_lead(trace), strict=True):
            facts |= {f"{name}_s": waited_s, f"{name}_share": waited_s / trace.length_s}
    facts |= _call_facts(trace)
    facts |= _copy_facts(trace)
    facts |= _communication_facts(trace, seconds, find_waiting(trace, operations))
    facts |= _balance_facts(trace, seconds)
    facts |= {name: amount for name, amount in trace.counts.items() if name in COUNTED}
    iterations = max(len(trace.marks_s) - 1, 0)
    if iterations:
        facts["iterations"] = float(iterations)
    return facts


def _measure_lead(trace: DeviceTrace) -> tuple[float, float]:
    """Return seconds before a device's first activity, means over the devices: the host's own, and setting it up.

    The host's own are those in no call of the runtime, but for what a process takes to start.
    """
    acts, calls = trace.activities, trace.calls
    ranks = trace.thread_ranks[calls.thread]
    of_runtime = np.isin(calls.role, (*DEVICE_CALLS, CallRole.START))
    own_s = setup_s = 0.0
    for number, device in enumerate(trace.devices):
        mine = acts.start_s[acts.device == number]
        if len(mine):
            first = float(mine.min())
            some = np.flatnonzero(of_runtime & (ranks == device.rank) & (calls.start_s < first))
            begin, end = calls.start_s[some], np.minimum(calls.end_s[some], first)
            called = float(merge_intervals(begin, end).cover_until(np.array([first]))[0])
            own_s += max(first - trace.begin_s - called - STARTED_S, 0.0)
            setup_s += _first_long(end - begin, begin, calls.role[some] != CallRole.START)
    return own_s / len(trace.devices), setup_s / len(trace.devices)


def _first_long(length_s: FloatArray, begin_s: FloatArray, may: BoolArray) -> float:
    """Return the seconds of the first call that is long enough to set a device up; zero without one."""
    found = np.flatnonzero(may & (length_s >= SETUP_S))
    return float(length_s[found[np.argmin(begin_s[found])]]) if len(found) else 0.0


def _kernel_facts(trace: DeviceTrace) -> dict[str, float]:
    acts = trace.activities
    kernels = acts.kind == Activity.COMPUTE
    length = (acts.end_s - acts.start_s)[kernels]
    if not len(length):
        return {"kernels": 0.0}
    total = float(length.sum())
    name = acts.name[kernels]
    matrix, plain = match_names(trace, _MATRIX)[name], find_plain_products(trace)[name]
    found = {
        "kernels": len(length) / len(trace.devices),
        "median_kernel_s": float(np.median(length)),
        "short_kernel_share": float((length < SHORT_S).mean()),
        "elementwise_share": float(length[match_names(trace, _ELEMENTWISE)[name]].sum()) / total,
        "matrix_share": float(length[matrix].sum()) / total,
    }
    fusible = find_fusible(trace, find_simple_kernels(trace))
    found["fusible_share"] = float((acts.end_s - acts.start_s)[fusible].sum()) / total
    if length[matrix].sum() > 0:
        found["plain_matrix_share"] = float(length[plain].sum()) / total
    return found


def find_plain_products(trace: DeviceTrace) -> BoolArray:
    """Return which names are of matrix products and convolutions without matrix units, those of doubles aside."""
    if trace.counts.get("devices_without_matrix_units"):
        return np.zeros(len(trace.names), dtype=bool)
    plain: BoolArray = match_names(trace, _MATRIX) & ~match_names(trace, _TENSOR) & ~match_names(trace, _DOUBLE)
    return plain


def find_simple_kernels(trace: DeviceTrace) -> BoolArray:
    """Return which names are of kernels that change each element of arrays by itself."""
    return match_names(trace, _BY_ELEMENT)


def _call_facts(trace: DeviceTrace) -> dict[str, float]:
    """Return counts and seconds of the host's calls, means over the processes with devices."""
    calls = trace.calls
    ranks = trace.rank_count
    found: dict[str, float] = {}
    length = calls.end_s - calls.start_s
    for role, words in ((CallRole.SYNCHRONIZE, "sync"), (CallRole.ALLOCATE, "allocation"), (CallRole.LAUNCH, "launch")):
        mine = calls.role == role
        found[f"{words}_calls"] = float(mine.sum()) / ranks
        found[f"{words}_s"] = float(length[mine].sum()) / ranks
    found["sync_wait_share"] = found["sync_s"] / trace.length_s
    found["graph_launches"] = float(len(find_named_calls(trace, "GraphLaunch")))
    return found


def _copy_facts(trace: DeviceTrace) -> dict[str, float]:
    acts = trace.activities
    copies = (acts.kind == Activity.COPY) & (acts.direction != Direction.FILL)
    length = acts.end_s - acts.start_s
    found = {"copies": float(copies.sum()) / len(trace.devices)}
    total = float(length[copies].sum())
    if not trace.copies_recorded:
        return {}
    to_device, to_host = (int((acts.direction == way).sum()) for way in (Direction.TO_DEVICE, Direction.TO_HOST))
    kernels = int((acts.kind == Activity.COMPUTE).sum())
    found["round_trips_per_kernel"] = min(to_device, to_host) / max(kernels, 1)
    found |= _find_upload_ratio(trace, length)
    managed = acts.kind == Activity.COPY
    managed &= match_names(trace, MANAGED)[acts.name]
    found["migration_share"] = float(length[managed].sum()) / len(trace.devices) / trace.length_s
    found |= _find_copy_spread(trace, length)
    if not copies.any():
        return found | {"pageable_share": 0.0, "host_copy_share": 0.0, "small_copy_share": 0.0}
    if total > 0:
        found["pageable_share"] = float(length[copies & acts.pageable].sum()) / total
        between = copies & np.isin(acts.direction, (Direction.TO_DEVICE, Direction.TO_HOST))
        found["host_copy_share"] = float(length[between].sum()) / total
    sized = copies & (acts.bytes >= 0)
    if sized.any():
        found["small_copy_share"] = float((acts.bytes[sized] < SMALL_B).mean())
    return found


def _find_upload_ratio(trace: DeviceTrace, length: FloatArray) -> dict[str, float]:
    """Return how the time of large copies to devices that compute already compares with that of computation."""
    acts = trace.activities
    kernels = acts.kind == Activity.COMPUTE
    first = np.full(len(trace.devices), np.inf)
    np.minimum.at(first, acts.device[kernels], acts.start_s[kernels])
    uploads = (acts.direction == Direction.TO_DEVICE) & (acts.start_s > first[acts.device])
    if not length[kernels].sum() > 0 or (uploads & (acts.bytes < 0)).any():
        return {}
    return {"upload_ratio": float(length[uploads & (acts.bytes >= LARGE_B)].sum() / length[kernels].sum())}


def _find_copy_spread(trace: DeviceTrace, length: FloatArray) -> dict[str, float]:
    """Return how far the devices' rates of large copies from pinned memory differ: the highest / the lowest."""
    acts = trace.activities
    large = (acts.kind == Activity.COPY) & ~acts.pageable & (acts.bytes >= LARGE_B) & (length > 0)
    found = 0.0
    for way in (Direction.TO_DEVICE, Direction.TO_HOST):
        some = np.flatnonzero(large & (acts.direction == way))
        rates = [
            float(np.median(acts.bytes[mine] / length[mine]))
            for device in range(len(trace.devices))
            if len(mine := some[acts.device[some] == device])
        ]
        found = max(found, max(rates) / min(rates)) if len(rates) > 1 else found
    return {"copy_rate_spread": found} if found else {}


def _communication_facts(
    trace: DeviceTrace, seconds: Mapping[str, FloatArray], waiting_until_s: FloatArray
) -> dict[str, float]:
    acts = trace.activities
    sends = acts.kind == Activity.COMMUNICATION
    found = {"communications": float(sends.sum()) / len(trace.devices)}
    lengths = [_union_s(trace, sends & (acts.device == number)) for number in range(len(trace.devices))]
    exposed = float((seconds["communication"] + seconds["imbalance"]).mean())
    if sum(lengths) > 0:
        found["exposed_share"] = min(exposed / (sum(lengths) / len(trace.devices)), 1.0)
        found["median_communication_s"] = float(np.median((acts.end_s - acts.start_s)[sends]))
        between = sends & match_names(trace, _BETWEEN_TWO)[acts.name]
        length = acts.end_s - acts.start_s
        found["point_to_point_share"] = float(length[between].sum() / length[sends].sum())
        large = sends & (acts.bytes >= LARGE_B)
        if large.any():
            moving = (acts.end_s - np.maximum(waiting_until_s, acts.start_s))[large]
            found["communication_s_per_GiB"] = float(np.median(moving / acts.bytes[large])) * 2**30
    total = trace.counts.get("communication_bytes", 0.0)
    if total > 0:
        found["float_communication_share"] = trace.counts["float_communication_bytes"] / total
    if len(trace.marks_s) > 1:
        found["communications_per_iteration"] = found["communications"] / (len(trace.marks_s) - 1)
    return found


def _union_s(trace: DeviceTrace, some: BoolArray) -> float:
    return merge_intervals(trace.activities.start_s[some], trace.activities.end_s[some]).length_s


def _balance_facts(trace: DeviceTrace, seconds: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return how evenly the devices are used, and how much of the time only one of them is busy."""
    compute = seconds["compute"]
    if len(compute) < 2:
        return {}
    found = {"imbalance": float(compute.max() / compute.mean()) if compute.mean() > 0 else 1.0}
    acts = trace.activities
    found |= _compare_kernels(trace)
    busy = [merge_intervals(acts.start_s[acts.device == n], acts.end_s[acts.device == n]) for n in range(len(compute))]
    edges = np.unique(np.concatenate([np.r_[each.start_s, each.end_s] for each in busy]))
    if len(edges) < 2:
        return found
    moment, length = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
    together = np.sum([each.hold_moments(moment) for each in busy], axis=0)
    some = float(length[together > 0].sum())
    found["one_busy_share"] = float(length[together == 1].sum()) / some if some > 0 else 0.0
    return found


def _compare_kernels(trace: DeviceTrace) -> dict[str, float]:
    """Return how the devices' kernels differ: in number, and in length where all run a kernel equally often.

    Both are the largest of the devices over their mean.
    """
    acts, devices = trace.activities, len(trace.devices)
    mine = np.flatnonzero(acts.kind == Activity.COMPUTE)
    key = acts.name[mine] * devices + acts.device[mine]
    size = len(trace.names) * devices
    count = np.bincount(key, minlength=size).reshape(-1, devices)
    seconds = np.bincount(key, weights=(acts.end_s - acts.start_s)[mine], minlength=size).reshape(-1, devices)
    found = {"kernel_count_spread": float(count.sum(axis=0).max() / count.sum(axis=0).mean())} if count.any() else {}
    alike = (count > 0).all(axis=1) & (count.max(axis=1) == count.min(axis=1))
    shared = seconds[alike].sum(axis=0)
    if shared.sum() >= 0.5 * seconds.sum() > 0:
        found["same_kernel_spread"] = float(shared.max() / shared.mean())
    return found
