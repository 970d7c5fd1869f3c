"""Changes to the graph of a recorded run: what each of them would have won, seconds of the run.

Each function here is one change; ``compute_gain`` times the graph that it makes of the recorded one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model.devices import DeviceGain
from advisor.trace.devices.account import HOST_STRETCH_S
from advisor.trace.devices.events import Activity, CallRole, DeviceTrace, Direction
from advisor.trace.devices.facts import SETUP_S, SMALL_MESSAGE_B, find_plain_products, find_simple_kernels
from advisor.trace.devices.kernel_facts import FULL_PPM, find_fusible
from advisor.trace.devices.naming import find_named_calls, match_names
from advisor.trace.devices.operator_facts import UPDATES, find_element_reads, find_value_copies
from advisor.trace.devices.run_graph import RunGraph, overlap_with_data

if TYPE_CHECKING:
    from advisor.model.records import BoolArray, FloatArray, IntArray

    Compute = Callable[[RunGraph], float]

#: What a call costs that need not wait.
_CALL_S: Final = 3e-6
#: What a graph of launches leaves of their cost on the host: usual, worst and best.
_GRAPH: Final = (0.1, 0.3, 0.03)
#: What pinned memory leaves of the time of a pageable copy: usual, worst and best.
_PINNED: Final = (0.45, 0.7, 0.25)
#: What a fused or foreach optimizer leaves of its launches: usual, worst and best.
_FUSED: Final = (0.05, 0.2, 0.01)
#: What of the host's own work between launches is left once it does less: usual, worst and best.
_LESS_WORK: Final = (0.5, 0.8, 0.2)
#: What matrix units, and fusion, leave of a kernel's time: usual, worst and best.
_UNITS: Final = (0.45, 0.75, 0.15)
_FUSED_LENGTH: Final = (0.5, 0.8, 0.3)
#: What is left of reading elements one by one, where all of them are read at once: usual, worst and best.
_READ_AT_ONCE: Final = (0.05, 0.3, 0.01)
#: Copies and communications below these sizes cost mostly their start; together they cost it so much less often.
_SMALL_COPY_B: Final = 64 << 10
_TOGETHER: Final = (0.15, 0.5, 0.05)
#: A communication of unknown size below this length is small.
_SHORT_MESSAGE_S: Final = 2e-3
#: Operators of PyTorch on the host that ask for a communication.
_REQUESTS: Final = "^c10d::"


def _remove_waits(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where no call waits for the device but the last of each process."""
    won = compute_gain(_let_return(graph, _find_waits(trace, graph)))
    return DeviceGain("synchronizations", won, 0.8 * won, 1.1 * won)


def _find_waits(trace: DeviceTrace, graph: RunGraph) -> BoolArray:
    """Return which calls wait for the device, or for data from it."""
    reads = (graph.awaits >= 0) & (trace.activities.direction[graph.awaits] == Direction.TO_HOST)
    found: BoolArray = (graph.role == CallRole.SYNCHRONIZE) | ((graph.role == CallRole.COPY) & reads)
    return found


def _let_return(graph: RunGraph, calls: BoolArray, most_s: float = _CALL_S) -> RunGraph:
    """Return the graph in which some calls wait for nothing and take at most so many seconds."""
    short = np.minimum(graph.call_s, most_s)
    return replace(graph, awaits=np.where(calls, -1, graph.awaits), call_s=np.where(calls, short, graph.call_s))


def _launch_graphs(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where launches are recorded once and started together."""
    whole = match_names(trace, "GraphLaunch")[trace.calls.name[graph.call]]
    launches = (graph.role == CallRole.LAUNCH) & ~whole
    won = [compute_gain(_shorten_launches(graph, launches, left)) for left in _GRAPH]
    return DeviceGain("launches", *won)


def _find_issuers(graph: RunGraph, some: BoolArray) -> BoolArray:
    """Return which calls issued some of the activities."""
    issuers = np.zeros(len(graph.role) + 1, dtype=bool)
    issuers[graph.issuer[some]] = True
    return issuers[:-1]


def _scale_issue(graph: RunGraph, launches: BoolArray, left: float) -> FloatArray:
    issue_s = graph.issue_s.copy()
    if len(launches):  # what follows no call has an issue at minus infinity, which is not scaled
        issue_s[(graph.issuer >= 0) & launches[graph.issuer]] *= left
    return issue_s


def _copy_from_pinned(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where pageable copies are pinned ones, and no copy keeps the host."""
    acts = trace.activities
    pageable = (acts.kind == Activity.COPY) & acts.pageable
    free = _let_return(graph, graph.role == CallRole.COPY, 2 * _CALL_S)
    won = []
    for left in _PINNED:
        changed = replace(
            free,
            length_s=np.where(pageable, left * graph.length_s, graph.length_s),
            issue_s=np.minimum(graph.issue_s, np.where((graph.issuer >= 0) & pageable, 2 * _CALL_S, np.inf)),
        )
        won.append(compute_gain(changed))
    return DeviceGain("pinned", *won) if pageable.any() else DeviceGain("pinned", 0.0, 0.0, 0.0)


def _prefetch_copies(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where copies from the host run ahead in a stream of their own."""
    acts = trace.activities
    moved = (acts.kind == Activity.COPY) & np.isin(acts.direction, (Direction.TO_DEVICE, Direction.TO_HOST))
    previous = graph.previous.copy()
    other = np.where((graph.other >= 0) & moved[graph.other], -1, graph.other)
    for device, way in np.unique(np.stack([acts.device[moved], acts.direction[moved]]), axis=1).T.tolist():
        mine = np.flatnonzero(moved & (acts.device == device) & (acts.direction == way))
        other[mine[1:]] = np.where(other[mine[1:]] < 0, mine[:-1], other[mine[1:]])  # an engine does one at a time
    for _ in range(8):
        behind = (previous >= 0) & moved[previous]
        if not behind.any():
            break
        previous[behind] = graph.previous[previous[behind]]
    changed = replace(_let_return(graph, graph.role == CallRole.COPY, 2 * _CALL_S), previous=previous, other=other)
    won = compute_gain(changed) if moved.any() else 0.0
    return DeviceGain("copies", won, 0.5 * won, won)


def _hide_communication(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where computation covers communication: no more of it than there is computation free for it."""
    sends = trace.activities.kind == Activity.COMMUNICATION
    won = compute_gain(replace(graph, length_s=np.where(sends, 0.0, graph.length_s)))
    devices = max(len(trace.devices), 1)
    free = float((graph.end_s - graph.start_s)[~sends].sum()) / devices
    covered = min(won, free)
    return DeviceGain("communication", covered, 0.5 * covered, 1.1 * covered)


def _balance_devices(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where in each iteration all devices compute as long as they do on average."""
    acts = trace.activities
    compute = acts.kind == Activity.COMPUTE
    devices = len(trace.devices)
    if devices < 2:
        return DeviceGain("imbalance", 0.0, 0.0, 0.0)
    edges = trace.marks_s[1:-1] if len(trace.marks_s) > 2 else np.zeros(0)
    at = np.searchsorted(edges, acts.start_s, side="right")
    key = acts.device * (len(edges) + 1) + at
    total = np.bincount(key[compute], weights=graph.length_s[compute], minlength=devices * (len(edges) + 1))
    table = total.reshape(devices, len(edges) + 1)
    even = np.divide(table.mean(axis=0), table, out=np.ones(table.shape), where=table > 0).reshape(-1)
    won = compute_gain(replace(graph, length_s=np.where(compute, graph.length_s * even[key], graph.length_s)))
    return DeviceGain("imbalance", won, 0.7 * won, 1.1 * won)


def _load_ahead(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where data are there when they are asked for."""
    behind = graph.behind_s
    if any(device.is_host for device in trace.devices):
        acts, late = trace.activities, np.maximum(behind, 0.0)
        ranks = trace.device_ranks[acts.device]
        behind = behind - overlap_with_data(trace, acts.start_s - late, acts.start_s, ranks)
    won = compute_gain(replace(graph, gap_s=graph.gap_s - graph.data_s, behind_s=behind))
    return DeviceGain("data", won, 0.7 * won, 1.1 * won)


def _reuse_memory(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where memory of the device is allocated once.

    A long call before the first kernel of its process sets the device or a library up, whatever else is allocated.
    """
    mine = graph.role == CallRole.ALLOCATE
    kernels = trace.activities.kind == Activity.COMPUTE
    ranks = trace.device_ranks[trace.activities.device[kernels]]
    first = np.full(int(max(trace.thread_ranks.max(initial=0), ranks.max(initial=0))) + 1, np.inf)
    np.minimum.at(first, ranks, trace.activities.start_s[kernels])
    before = graph.call_start_s < first[trace.thread_ranks[trace.calls.thread[graph.call]]]
    sets_up = before & (graph.call_end_s - graph.call_start_s >= SETUP_S)
    won = compute_gain(_let_return(graph, mine & ~sets_up))
    return DeviceGain("allocations", won, 0.8 * won, 1.1 * won)


def _load_code_before(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where nothing is loaded, compiled or captured any more while the run is timed."""
    mine = graph.role == CallRole.START
    won = compute_gain(replace(graph, call_s=np.where(mine, 0.0, graph.call_s), issue_s=_scale_issue(graph, mine, 0.0)))
    return DeviceGain("startup", won, 0.5 * won, won)


def _fuse_optimizer(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where an optimizer updates all parameters with a few launches."""
    calls = trace.calls
    steps = find_named_calls(trace, UPDATES)
    if not len(steps):
        return DeviceGain("optimizer", 0.0, 0.0, 0.0)
    place = np.searchsorted(calls.start_s[steps], graph.call_start_s, side="right") - 1
    inside = (place >= 0) & (graph.call_end_s <= calls.end_s[steps[np.maximum(place, 0)]])
    inside &= (calls.thread[graph.call] == calls.thread[steps[np.maximum(place, 0)]]) & (graph.role == CallRole.LAUNCH)
    won = [compute_gain(_shorten_launches(graph, inside, left)) for left in _FUSED]
    return DeviceGain("optimizer", *won)


def _shorten_launches(graph: RunGraph, launches: BoolArray, left: float) -> RunGraph:
    """Return the graph with this share left of some launches and of the host's work before them."""
    return replace(
        graph,
        gap_s=graph.gap_s - (1 - left) * np.where(launches, graph.launch_s, 0.0),
        call_s=np.where(launches, left * graph.call_s, graph.call_s),
        issue_s=_scale_issue(graph, launches, left),
    )


def _read_later(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where no value is read from the device in between: calls that wait for such a copy return."""
    reads = (graph.awaits >= 0) & find_value_copies(trace)[graph.awaits]
    won = compute_gain(_let_return(graph, reads)) if reads.any() else 0.0
    return DeviceGain("reads", won, 0.5 * won, 1.1 * won)


def _keep_on_device(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where data stay on the device: of copies from and to the host the first and the last are left."""
    acts = trace.activities
    gone = np.zeros(len(acts.start_s), dtype=bool)
    for way in (Direction.TO_DEVICE, Direction.TO_HOST):
        mine = np.flatnonzero((acts.kind == Activity.COPY) & (acts.direction == way))
        gone[mine[1:-1]] = True
    blocks = (graph.awaits >= 0) & gone[graph.awaits]
    none = _find_issuers(graph, gone) & (graph.role == CallRole.COPY)
    changed = replace(
        _let_return(graph, blocks | none, 0.0),
        length_s=np.where(gone, 0.0, graph.length_s),
        issue_s=np.where(gone & (graph.issuer >= 0), 0.0, graph.issue_s),
    )
    won = compute_gain(changed) if gone.any() else 0.0
    return DeviceGain("resident", 0.8 * won, 0.3 * won, won)


def _join_copies(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where many small copies are a few: of each the start is saved, on device and host."""
    acts = trace.activities
    small = (acts.kind == Activity.COPY) & (acts.bytes >= 0) & (acts.bytes < _SMALL_COPY_B)
    mine = _find_issuers(graph, small) & (graph.role == CallRole.COPY) & (graph.awaits < 0)
    won = []
    for left in _TOGETHER:
        changed = replace(
            graph,
            length_s=np.where(small, left * graph.length_s, graph.length_s),
            gap_s=graph.gap_s - (1 - left) * np.where(mine, np.minimum(graph.gap_s, _CALL_S), 0.0),
            call_s=np.where(mine, left * graph.call_s, graph.call_s),
            issue_s=_scale_issue(graph, mine, left),
        )
        won.append(compute_gain(changed))
    return DeviceGain("batched", *won) if small.any() else DeviceGain("batched", 0.0, 0.0, 0.0)


def _join_communications(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where small communications are a fifth as many: what they take is their start.

    Those without a size count as small where they are short, all of a channel where most of it are: there the others
    were held up. Where hosts compute in place of devices, the operators that ask for communications are as many fewer.
    """
    acts = trace.activities
    sends = acts.kind == Activity.COMMUNICATION
    usual = graph.length_s.copy()
    for channel in np.unique(acts.channel[sends & (acts.bytes < 0)]).tolist():
        mine = sends & (acts.channel == channel)
        usual[mine] = np.minimum(usual[mine], np.median(usual[mine]))
    small = sends & np.where(acts.bytes >= 0, acts.bytes < SMALL_MESSAGE_B, usual < _SHORT_MESSAGE_S)
    if int(small.sum()) < 2:
        return DeviceGain("buckets", 0.0, 0.0, 0.0)
    requests = match_names(trace, _REQUESTS)[acts.name] * float(small.sum() / sends.sum())
    saved = graph.length_s * (small + requests)
    won = []
    for part in (0.8, 0.4, 0.95):
        group = _meet_less_often(trace, graph, small, round(1 / (1 - part)))
        won.append(compute_gain(replace(graph, length_s=graph.length_s - part * saved, group=group)))
    return DeviceGain("buckets", *won)


def _meet_less_often(trace: DeviceTrace, graph: RunGraph, some: BoolArray, pieces: int) -> IntArray:
    """Return the operations, where of ``pieces`` in a row, by channel, the last alone waits for its partners."""
    group = graph.group.copy()
    for channel in np.unique(trace.activities.channel[some & (group >= 0)]).tolist():
        mine = np.flatnonzero(some & (group >= 0) & (trace.activities.channel == channel))
        operations, place = np.unique(group[mine], return_inverse=True)
        start = np.full(len(operations), np.inf)
        np.minimum.at(start, place, graph.start_s[mine])
        order = np.argsort(np.argsort(start, kind="stable"), kind="stable")
        group[mine[order[place] % pieces != pieces - 1]] = -1
    return group


def _halve_communication(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where communications move half as many bytes; their start stays."""
    sends = trace.activities.kind == Activity.COMMUNICATION
    if not sends.any():
        return DeviceGain("half", 0.0, 0.0, 0.0)
    start = float(np.quantile(graph.length_s[sends], 0.05))
    moving = np.where(sends, np.maximum(graph.length_s - start, 0.0), 0.0)
    won = [compute_gain(replace(graph, length_s=graph.length_s - part * moving)) for part in (0.45, 0.25, 0.5)]
    return DeviceGain("half", *won)


def _overlap_host(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where the host launches first, and does its own work while the device computes.

    The run takes as long as the devices without that work, and no less than all work of a host.
    """
    free = _let_return(graph, _find_waits(trace, graph))
    without = compute_gain(replace(free, gap_s=graph.gap_s - _own_stretches(graph)))
    alone = compute_gain(replace(free, length_s=np.zeros(len(graph.length_s))))
    won, behind = min(without, alone), compute_gain(free)
    return DeviceGain("host", won, 0.5 * behind, max(1.1 * won, behind))


def _own_stretches(graph: RunGraph) -> FloatArray:
    """Return the host's own work before each call: no data loaded, no launch prepared."""
    return np.maximum(graph.gap_s - graph.data_s - graph.launch_s, 0.0)


def _lighten_host(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where the host does half of its own work between launches."""
    stretch = _own_stretches(graph)
    won = [compute_gain(replace(graph, gap_s=graph.gap_s - (1 - left) * stretch)) for left in _LESS_WORK]
    return DeviceGain("host_work", *won)


def _use_matrix_units(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where matrix products that run without matrix units take less than half of their time."""
    plain = find_plain_products(trace)[trace.activities.name] & (trace.activities.kind == Activity.COMPUTE)
    won = [
        compute_gain(replace(graph, length_s=np.where(plain, left * graph.length_s, graph.length_s))) for left in _UNITS
    ]
    return DeviceGain("matrix_units", *won)


def _fill_grids(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where kernels with fewer blocks than multiprocessors use all of those, half-way as a rule."""
    fill = trace.activities.fill_ppm
    small = (trace.activities.kind == Activity.COMPUTE) & (fill >= 0) & (fill < FULL_PPM)
    lost = np.where(small, graph.length_s * (1 - fill / FULL_PPM), 0.0)
    won = [compute_gain(replace(graph, length_s=graph.length_s - part * lost)) for part in (0.5, 0.2, 0.9)]
    return DeviceGain("grids", *won)


def _fuse_kernels(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where kernels by element are part of the one before, and move half as many bytes."""
    fusible = find_fusible(trace, find_simple_kernels(trace))
    launches = _find_issuers(graph, fusible) & (graph.role == CallRole.LAUNCH)
    won = []
    for left in _FUSED_LENGTH:
        shorter = replace(graph, length_s=np.where(fusible, left * graph.length_s, graph.length_s))
        won.append(compute_gain(_shorten_launches(shorter, launches, 0.0)))
    return DeviceGain("fusion", *won)


def _read_at_once(trace: DeviceTrace, graph: RunGraph, compute_gain: Compute) -> DeviceGain:
    """Return the gain where a host reads the elements of a tensor at once: operators, and the work between them."""
    elements = find_element_reads(trace)
    won = []
    for left in _READ_AT_ONCE if elements.any() else ():
        saved = np.where(elements, (1 - left) * np.clip(graph.behind_s, 0.0, HOST_STRETCH_S), 0.0)
        length = np.where(elements, left * graph.length_s, graph.length_s)
        won.append(compute_gain(replace(graph, length_s=length, behind_s=graph.behind_s - saved)))
    return DeviceGain("elements", *(won or (0.0, 0.0, 0.0)))


#: Each change by the function that makes it.
CHANGES: Final = (
    _remove_waits, _launch_graphs, _copy_from_pinned, _prefetch_copies, _hide_communication, _balance_devices,
    _load_ahead, _reuse_memory, _load_code_before, _fuse_optimizer, _read_later, _keep_on_device, _join_copies,
    _join_communications, _halve_communication, _overlap_host, _lighten_host,
    _use_matrix_units, _fill_grids, _fuse_kernels, _read_at_once,
)  # fmt: skip
