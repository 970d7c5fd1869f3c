"""What a framework's operators and ranges tell by their names, and the host's share of the cost of launching."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.trace.devices.account import HOST_STRETCH_S
from advisor.trace.devices.events import DEVICE_CALLS, Activity, CallRole, DeviceTrace, Direction
from advisor.trace.devices.naming import find_named_calls

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray

#: Operators that bring a value to the host, or whose size only the host knows when the device is done.
_READS: Final = re.compile(r"^aten::(_local_scalar_dense|nonzero|masked_select|_unique2|equal)$")
UPDATES: Final = re.compile(r"^Optimizer\.step")
_FORWARD: Final = re.compile(r"^(DistributedDataParallel\.forward|FullyShardedDataParallel\.forward)")
#: A frame of torch.compile and how often it was compiled before: "Torch-Compiled Region: 3/2".
_COMPILED: Final = re.compile(r"^Torch-Compiled Region: (\d+)/(\d+)")
_HOST_MEMORY: Final = re.compile(r"MallocHost|HostAlloc|HostMalloc|HostRegister|FreeHost|HostFree|HostUnregister")
#: Operators that bring an element of a tensor to Python, and the one that selects it before.
_TAKE, _SELECT = "aten::item", "aten::select"
#: A copy to the host of at most this many bytes brings a value.
VALUE_B: Final = 64


def compute_operator_facts(trace: DeviceTrace) -> dict[str, float]:
    """Return facts on reads of values, optimizers, recompilation, pinning of memory, and the cost of a launch."""
    ranks = trace.rank_count
    reads = max(len(find_named_calls(trace, _READS)), int(find_value_copies(trace).sum()))
    iterations = max(len(trace.marks_s) - 1, 0)
    found = {"value_reads": reads / ranks, "host_allocations": len(find_named_calls(trace, _HOST_MEMORY)) / ranks}
    if iterations:
        found["value_reads_per_iteration"] = reads / ranks / iterations
    updates = find_named_calls(trace, UPDATES)
    if len(updates):
        found["optimizer_launches"] = _count_launches(trace, updates) / len(updates)
        forward = len(find_named_calls(trace, _FORWARD))
        if forward:
            found["passes_per_update"] = forward / len(updates)
    found["recompilations"] = _count_recompilations(trace)
    return found | _launch_cost(trace)


def find_element_reads(trace: DeviceTrace) -> BoolArray:
    """Return which operators of hosts, in place of devices, take one more element directly after another one."""
    acts = trace.activities
    found: BoolArray = np.zeros(len(acts.name), dtype=bool)
    takes, selects = (np.array([name == each for name in trace.names], dtype=bool) for each in (_TAKE, _SELECT))
    for number in (number for number, device in enumerate(trace.devices) if device.is_host):
        mine = np.flatnonzero((acts.device == number) & (acts.kind == Activity.COMPUTE))
        reads = takes[acts.name[mine]]
        reads[:-1] |= selects[acts.name[mine]][:-1] & reads[1:]
        found[mine[1:]] = reads[1:] & reads[:-1]
    return found


def measure_element_reads(trace: DeviceTrace) -> float:
    """Return the seconds of reading elements, with the host's own work before each, a mean over the devices."""
    acts, reads = trace.activities, find_element_reads(trace)
    gap = np.zeros(len(acts.name))
    for number in np.unique(acts.device[reads]).tolist():
        mine = np.flatnonzero((acts.device == number) & (acts.kind == Activity.COMPUTE))
        gap[mine[1:]] = acts.start_s[mine][1:] - np.maximum.accumulate(acts.end_s[mine])[:-1]
    seconds = acts.end_s - acts.start_s + np.clip(gap, 0.0, HOST_STRETCH_S)
    return float(seconds[reads].sum()) / len(trace.devices)


def find_value_copies(trace: DeviceTrace) -> BoolArray:
    """Return which activities are copies that bring a value to the host, and not an array."""
    acts = trace.activities
    copies = (acts.kind == Activity.COPY) & (acts.direction == Direction.TO_HOST)
    found: BoolArray = copies & (acts.bytes >= 0) & (acts.bytes <= VALUE_B)
    return found


def _count_launches(trace: DeviceTrace, ranges: IntArray) -> int:
    """Return how many launches lie in some ranges of their own thread."""
    calls = trace.calls
    launches = np.flatnonzero(calls.role == CallRole.LAUNCH)
    count = 0
    for thread in np.unique(calls.thread[ranges]).tolist():
        start = calls.start_s[launches[calls.thread[launches] == thread]]
        mine = ranges[calls.thread[ranges] == thread]
        count += int((np.searchsorted(start, calls.end_s[mine]) - np.searchsorted(start, calls.start_s[mine])).sum())
    return count


def _count_recompilations(trace: DeviceTrace) -> float:
    """Return how many variants of compiled frames ran beside the first of each."""
    variants = {found.groups() for words in trace.names if (found := _COMPILED.match(words))}
    return float(len(variants) - len({frame for frame, _ in variants}))


def _launch_cost(trace: DeviceTrace) -> dict[str, float]:
    """Return how much of the host's time of launching passes before the calls: in Python and the framework."""
    calls = trace.calls
    feeding = np.flatnonzero(np.isin(calls.role, DEVICE_CALLS))
    before: list[FloatArray] = []
    inside: list[FloatArray] = []
    for thread in np.unique(calls.thread[feeding]).tolist():
        mine = feeding[calls.thread[feeding] == thread]
        gap = calls.start_s[mine][1:] - np.maximum.accumulate(calls.end_s[mine])[:-1]
        counts = (gap >= 0) & (gap <= HOST_STRETCH_S) & (calls.role[mine][1:] == CallRole.LAUNCH)
        before.append(gap[counts])
        inside.append((calls.end_s[mine] - calls.start_s[mine])[1:][counts])
    gaps = np.concatenate([np.zeros(0), *before])
    if not len(gaps):
        return {}
    total = float(gaps.sum() + np.concatenate(inside).sum())
    return {"launch_interval_s": float(np.median(gaps)), "prepare_share": float(gaps.sum()) / total if total else 0.0}
