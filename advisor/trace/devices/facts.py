"""Numbers on the use of devices that rules ask for (``device.*`` in docs/facts.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.events import Activity, CallRole, Direction
from advisor.trace.devices.intervals import merge_intervals

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
_TENSOR: Final = re.compile(r"tensorop|16816|1688|884|16832|hmma|imma|wgmma|wmma|xmma|mfma|_MI\d+x\d+", re.I)
_MATRIX: Final = re.compile(r"gemm|Cijk|convolve|conv2d|cudnn.*conv|implicit_convolve|winograd", re.I)
_ELEMENTWISE: Final = re.compile(
    r"elementwise|reduce_kernel|layer_?norm|softmax|CatArrayBatchedCopy|foreach|multi_tensor_apply", re.I
)


def compute_device_facts(
    trace: DeviceTrace, seconds: Mapping[str, FloatArray], operations: MatchedOperations
) -> dict[str, float]:
    """Return the facts that the trace tells, without the prefix ``device.``."""
    facts = {"devices": float(len(trace.devices)), "busy_share": float(seconds["compute"].mean()) / trace.length_s}
    facts["on_host"] = float(any(device.is_host for device in trace.devices))
    facts |= _kernel_facts(trace)
    facts |= _call_facts(trace)
    facts |= _copy_facts(trace)
    facts |= _communication_facts(trace, seconds)
    facts |= _balance_facts(trace, seconds)
    iterations = max(len(trace.marks_s) - 1, 0)
    if iterations:
        facts["iterations"] = float(iterations)
    return facts


def _kernel_facts(trace: DeviceTrace) -> dict[str, float]:
    acts = trace.activities
    kernels = acts.kind == Activity.COMPUTE
    length = (acts.end_s - acts.start_s)[kernels]
    if not len(length):
        return {"kernels": 0.0}
    total = float(length.sum())
    name = acts.name[kernels]
    matrix, tensor = _seconds_named(trace, _MATRIX, name, length), _seconds_named(trace, _TENSOR, name, length)
    found = {
        "kernels": len(length) / len(trace.devices),
        "median_kernel_s": float(np.median(length)),
        "short_kernel_share": float((length < SHORT_S).mean()),
        "elementwise_share": float(_seconds_named(trace, _ELEMENTWISE, name, length).sum()) / total,
        "matrix_share": float(matrix.sum()) / total,
    }
    if matrix.sum() > 0:
        found["plain_matrix_share"] = float(matrix[tensor == 0].sum()) / total
    return found


def _seconds_named(trace: DeviceTrace, pattern: re.Pattern[str], name: FloatArray, length: FloatArray) -> FloatArray:
    fits = np.array([pattern.search(words) is not None for words in trace.names])
    return np.where(fits[name.astype(np.int64)], length, 0.0)


def _call_facts(trace: DeviceTrace) -> dict[str, float]:
    """Return counts and seconds of the host's calls, means over the processes with devices."""
    calls = trace.calls
    ranks = {device.rank for device in trace.devices}
    found: dict[str, float] = {}
    length = calls.end_s - calls.start_s
    for role, words in ((CallRole.SYNCHRONIZE, "sync"), (CallRole.ALLOCATE, "allocation"), (CallRole.LAUNCH, "launch")):
        mine = calls.role == role
        found[f"{words}_calls"] = float(mine.sum()) / len(ranks)
        found[f"{words}_s"] = float(length[mine].sum()) / len(ranks)
    found["sync_wait_share"] = found["sync_s"] / trace.length_s
    found["graph_launches"] = float(sum(
        int((calls.name == number).sum()) for number, words in enumerate(trace.names) if "GraphLaunch" in words
    ))  # fmt: skip
    return found


def _copy_facts(trace: DeviceTrace) -> dict[str, float]:
    acts = trace.activities
    copies = (acts.kind == Activity.COPY) & (acts.direction != Direction.FILL)
    length = acts.end_s - acts.start_s
    found = {"copies": float(copies.sum()) / len(trace.devices)}
    total = float(length[copies].sum())
    if not trace.copies_recorded:
        return {}
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


def _communication_facts(trace: DeviceTrace, seconds: Mapping[str, FloatArray]) -> dict[str, float]:
    acts = trace.activities
    sends = acts.kind == Activity.COMMUNICATION
    found = {"communications": float(sends.sum()) / len(trace.devices)}
    lengths = [_union_s(trace, sends & (acts.device == number)) for number in range(len(trace.devices))]
    exposed = float((seconds["communication"] + seconds["imbalance"]).mean())
    if sum(lengths) > 0:
        found["exposed_share"] = min(exposed / (sum(lengths) / len(trace.devices)), 1.0)
        found["median_communication_s"] = float(np.median((acts.end_s - acts.start_s)[sends]))
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
    busy = [merge_intervals(acts.start_s[acts.device == n], acts.end_s[acts.device == n]) for n in range(len(compute))]
    edges = np.unique(np.concatenate([np.r_[each.start_s, each.end_s] for each in busy]))
    if len(edges) < 2:
        return found
    moment, length = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
    together = np.sum([each.hold_moments(moment) for each in busy], axis=0)
    some = float(length[together > 0].sum())
    found["one_busy_share"] = float(length[together == 1].sum()) / some if some > 0 else 0.0
    return found
