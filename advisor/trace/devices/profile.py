"""The Profile of a run with devices: its account by level, and the seconds of every thread and stream."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from advisor.model.devices import DEVICE_GAPS, DeviceCause, DeviceUse
from advisor.model.errors import InputError
from advisor.model.records import FloatArray, IntArray, Note, Phase, Processor, Profile, Region
from advisor.model.units import format_seconds
from advisor.support.grouping import sum_by_group
from advisor.trace.devices import account, collectives
from advisor.trace.devices.earlier_work import leave_out_earlier_work
from advisor.trace.devices.events import Activity, DeviceTrace
from advisor.trace.devices.facts import compute_device_facts, find_plain_products, find_simple_kernels
from advisor.trace.devices.intervals import find_enclosing
from advisor.trace.devices.kernel_facts import estimate_losses
from advisor.trace.devices.periods import find_periods
from advisor.trace.devices.replay import replay_changes
from advisor.trace.devices.start_up import mark_start_up
from advisor.trace.devices.timeline import build_device_timeline

if TYPE_CHECKING:
    from advisor.trace.devices.collectives import MatchedOperations

LevelStatus = Literal["measured", "estimated"]
#: How many names have rows of their own; the seconds of the others are added up.
_MOST_NAMES: Final = 2000
#: How many causes of a gap are kept.
_MOST_CAUSES: Final = 40
#: Of activities without the call that issued them, this share may be; then idle time is only estimated.
_UNLINKED: Final = 0.05
#: Communication without its partners may be this share of all before imbalance cannot be told from it.
_UNMATCHED: Final = 0.05
#: A run with pauses as long as this, in which nothing at all was recorded, is busy for at least this share of them.
_PAUSE_S: Final = 3600.0
_LEAST_BUSY: Final = 1e-4
#: Processes of one run are not so many times the longest of them apart.
_APART: Final = 10.0


def profile_devices(trace: DeviceTrace, path: Path, reader: str) -> Profile:
    """Return the profile of ``trace``; raises ``InputError`` for ``path`` where no device did anything."""
    if not len(trace.activities.start_s):
        raise InputError(path, "no activity of a device was recorded, and no operators of a host")
    trace = mark_start_up(leave_out_earlier_work(trace))
    operations = collectives.match_operations(trace)
    trace, shift = collectives.align_ranks(trace, operations)
    operations = collectives.match_operations(trace)
    _refuse_strangers(trace, operations, path)
    _refuse_pauses(trace, path)
    if len(trace.marks_s) < 2:
        trace = _estimate_iterations(trace)
    use = measure_device_use(trace, operations)
    processors, regions, phase, idle = _build_table(trace)
    digest = hashlib.sha256(np.ascontiguousarray(trace.activities.start_s).tobytes()).hexdigest()[:12]
    return Profile(
        program=trace.program,
        run=digest,
        reader=reader,
        actual_s=trace.length_s,
        processors=processors,
        regions=regions,
        phases=(phase,),
        status={"wall_s": "measured"},
        started=trace.started,
        paradigms=trace.paradigms,
        parameters=trace.parameters,
        outside={"idle": idle},
        notes=(*trace.notes, *_collect_notes(trace, operations, shift)),
        ranks_expected=None,
        devices=use,
    )


def _refuse_strangers(trace: DeviceTrace, operations: MatchedOperations, path: Path) -> None:
    """Raise ``InputError`` where ranks that share no communication are far apart in time: they are of several runs."""
    if trace.rank_count < 2 or operations.members:
        return
    acts, ranks = trace.activities, trace.device_ranks
    mine = [ranks[acts.device] == rank for rank in np.unique(ranks[acts.device])]
    begin, end = np.array([(acts.start_s[some].min(), acts.end_s[some].max()) for some in mine]).T
    apart = begin.max() - end.min()
    if apart > _APART * float((end - begin).max()):
        text = (
            f"holds processes that are {format_seconds(apart)} apart and do not communicate: they are of several runs, "
            "or of nodes whose clocks differ; name the recording of one"
        )
        raise InputError(path, text)


def _refuse_pauses(trace: DeviceTrace, path: Path) -> None:
    """Raise ``InputError`` where moments lie hours apart with nothing recorded between: they are of several runs."""
    acts, calls = trace.activities, trace.calls
    start_s = np.concatenate((acts.start_s, calls.start_s))
    order = np.argsort(start_s)
    reached_s = np.maximum.accumulate(np.concatenate((acts.end_s, calls.end_s))[order])
    pauses_s = start_s[order][1:] - reached_s[:-1]
    paused_s = float(pauses_s[pauses_s > _PAUSE_S].sum())
    recorded_s = float(reached_s[-1] - start_s[order[0]]) - paused_s
    if recorded_s < _LEAST_BUSY * paused_s:
        text = (
            f"holds {format_seconds(recorded_s)} of events with pauses of {format_seconds(paused_s)} in all between "
            "them: they are of several runs; name the recording of one"
        )
        raise InputError(path, text)


def _estimate_iterations(trace: DeviceTrace) -> DeviceTrace:
    """Return the trace with what its device repeats as iterations, where it does."""
    limits = find_periods(trace)
    if not len(limits):
        return trace
    text = f"no iterations are marked: {len(limits) - 1} were found, since what the device does repeats"
    return replace(trace, marks_s=limits, notes=(*trace.notes, Note("iterations found", text)))


def measure_device_use(trace: DeviceTrace, operations: MatchedOperations) -> DeviceUse:
    """Return the account of the run by its devices; the clocks of its processes are aligned already."""
    waiting = collectives.find_waiting(trace, operations)
    pieces = account.share_exposure(trace, account.attribute_device_time(trace, waiting), operations)
    seconds = account.sum_levels(trace, pieces)
    kept: dict[str, int] = {}
    causes = []
    for level, name, length, count in account.iterate_causes(trace, pieces):
        kept[level] = kept.get(level, 0) + 1
        if kept[level] <= _MOST_CAUSES:
            causes.append(DeviceCause(level, name, length, count))
    peak, losses = _find_losses(trace, seconds["compute"])
    status, reasons = _judge_levels(trace, operations)
    return DeviceUse(
        devices=tuple(device.name for device in trace.devices),
        seconds=seconds,
        iterations=account.sum_iterations(trace, pieces),
        causes=(*losses, *causes),
        peak_s=peak,
        timeline=build_device_timeline(trace, pieces, waiting),
        facts=compute_device_facts(trace, seconds, operations),
        gains=replay_changes(trace, waiting),
        status=status,
        reasons=reasons,
    )


def _find_losses(trace: DeviceTrace, compute_s: FloatArray) -> tuple[FloatArray | None, list[DeviceCause]]:
    """Return the seconds of the devices' kernels without what is lost in them for sure, and what is lost by name.

    Kernels that run at a time lose together no more than the time that they take together.
    """
    lost = estimate_losses(trace, find_plain_products(trace), find_simple_kernels(trace))
    if lost is None:
        return None, []
    acts, devices = trace.activities, len(trace.devices)
    kernels = acts.kind == Activity.COMPUTE
    length = np.where(kernels, acts.end_s - acts.start_s, 0.0)
    total = np.bincount(acts.device, weights=length, minlength=devices)
    lost = lost * (compute_s / np.maximum(total, 1e-300))[acts.device]
    by_name = np.bincount(acts.name, weights=lost, minlength=len(trace.names)) / devices
    count = np.bincount(acts.name[kernels], minlength=len(trace.names))
    order = np.argsort(-by_name, kind="stable")[:_MOST_CAUSES]
    causes = [DeviceCause("kernels", trace.names[n], float(by_name[n]), int(count[n])) for n in order if by_name[n] > 0]
    return compute_s - np.bincount(acts.device, weights=lost, minlength=devices), causes


def _judge_levels(trace: DeviceTrace, operations: MatchedOperations) -> tuple[dict[str, LevelStatus], dict[str, str]]:
    """Return how sure each level is, and why a level is not measured; ``unavailable`` is told by its reason alone."""
    acts = trace.activities
    status: dict[str, LevelStatus] = dict.fromkeys(("compute", *DEVICE_GAPS[1:]), "measured")
    reasons: dict[str, str] = {}
    unlinked = float((acts.call < 0).mean())
    if not len(trace.calls.start_s):
        for level in DEVICE_GAPS[DEVICE_GAPS.index("synchronizations") :]:
            status.pop(level)
            reasons[level] = "no calls of the host were recorded: why a device was idle is not known"
    elif unlinked > _UNLINKED and not any(device.is_host for device in trace.devices):
        for level in ("launches", "synchronizations", "data", "host", "startup"):
            status[level] = "estimated"
            reasons[level] = f"{unlinked:.0%} of the activities are not linked to the host call that issued them"
    sends = acts.kind == Activity.COMMUNICATION
    matched = sum(rows.size for rows in operations.members)
    if sends.any() and matched < (1 - _UNMATCHED) * int(sends.sum()):
        status.pop("imbalance")
        reasons["imbalance"] = "the other devices of these communications are not in the traces, or cannot be matched"
    return status, reasons


def _build_table(trace: DeviceTrace) -> tuple[tuple[Processor, ...], tuple[Region, ...], Phase, FloatArray]:
    """Return processors (host threads, then streams of devices), regions, a phase of own seconds, and idle seconds."""
    acts, calls = trace.activities, trace.calls
    host = {device for device, known in enumerate(trace.devices) if known.is_host}
    streams, stream = np.unique(np.stack([acts.device, acts.stream]), axis=1, return_inverse=True)
    stream = stream.reshape(-1)
    threads = np.unique(calls.thread)
    processors = []
    counts: dict[int, int] = {}
    for thread in threads.tolist():
        known = trace.threads[thread]
        counts[known.rank] = counts.get(known.rank, -1) + 1
        processors.append(Processor(known.rank, counts[known.rank], known.host))
    for device, _ in streams.T.tolist():
        unit = trace.devices[device]
        counts[unit.rank] = counts.get(unit.rank, -1) + 1
        processors.append(
            Processor(unit.rank, counts[unit.rank], unit.host, device=None if device in host else unit.number)
        )
    own = _own_seconds(trace)
    name = np.r_[calls.name, acts.name]
    processor = np.r_[np.searchsorted(threads, calls.thread), len(threads) + stream]
    seconds = np.r_[own, acts.end_s - acts.start_s]
    total = np.bincount(name, weights=seconds, minlength=len(trace.names))
    shown = np.argsort(-total, kind="stable")[:_MOST_NAMES]
    shown = shown[total[shown] > 0]
    row: IntArray = np.full(len(trace.names), len(shown), dtype=np.int64)
    row[shown] = np.arange(len(shown))
    rest = bool((total > 0).sum() > len(shown))
    key = row[name] * len(processors) + processor
    table = sum_by_group(key, seconds, (len(shown) + 1) * len(processors)).reshape(len(shown) + 1, len(processors))
    regions = tuple(Region(trace.names[number]) for number in shown) + ((Region("others"),) if rest else ())
    table = table[: len(regions)]
    phase = Phase("the whole run", "whole", np.arange(len(regions)), {"wall_s": table[:, :, None]})
    return tuple(processors), regions, phase, trace.length_s - table.sum(axis=0)


def _own_seconds(trace: DeviceTrace) -> FloatArray:
    """Return the seconds of each host call less those of the calls in it."""
    calls = trace.calls
    own = calls.end_s - calls.start_s
    for thread in np.unique(calls.thread).tolist():
        mine = np.flatnonzero(calls.thread == thread)
        parent = find_enclosing(calls.start_s[mine], calls.end_s[mine])
        inner = parent >= 0
        whole = own[mine]
        own[mine] -= np.bincount(parent[inner], weights=whole[inner], minlength=len(mine))
    return np.maximum(own, 0.0)


def _collect_notes(trace: DeviceTrace, operations: MatchedOperations, shift: FloatArray) -> tuple[Note, ...]:
    notes = []
    if any(device.is_host for device in trace.devices):
        text = "no device was used: the operators of each process's host threads stand for one"
        notes.append(Note("host in place of devices", text))
    kind = trace.activities.kind
    if (kind == Activity.COMMUNICATION).any() and not (kind == Activity.COMPUTE).any():
        text = "no kernel that computes was recorded: what devices did between communications is not known"
        notes.append(Note("kernels missing", text, 0.3, "record all kernels, not only those of communication"))
    ranks = trace.rank_count
    if trace.ranks_expected is not None and ranks < trace.ranks_expected:
        text = (
            f"the traces hold {ranks} of {trace.ranks_expected} ranks: waiting for the others counts as communication"
        )
        notes.append(Note("ranks missing", text, 0.15, "put the traces of all ranks into one directory and name that"))
    if operations.unmatched:
        text = (
            f"collectives whose number of partners differs: {operations.unmatched:,}; their waiting is not told apart"
        )
        notes.append(Note("communications unmatched", text, 0.05))
    if shift.any():
        text = f"the clocks of ranks differ by up to {format_seconds(float(np.ptp(shift)))}; aligned by communication"
        notes.append(Note("clocks aligned", text, 0.05))
    return tuple(notes)
