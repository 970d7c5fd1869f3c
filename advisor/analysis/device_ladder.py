"""Bounds, gaps and grade of a run with devices (docs/devices.md): the levels of ``model.devices``, in seconds.

Each bound is a mean over the devices, each gap one level's seconds. A level that is unknown merges with its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from advisor.model import policy
from advisor.model.devices import DEVICE_LEVELS, DeviceUse
from advisor.model.records import Bound, FloatArray, Gap, Note, Profile, Share, Status
from advisor.model.units import format_count, format_seconds

NO_PEAK: Final = "kernels were timed, not counted: how far they are from the device's peak rates is not known"
BY_GRIDS: Final = "from the grids of kernels and their names alone: counters tell how far the others are from the peak"
COLLECT_PEAK: Final = "ncu --set roofline --csv ./PROGRAM (NVIDIA), rocprof-compute profile -- ./PROGRAM (AMD)"
ON_HOSTS: Final = "operators of hosts were timed: how far they are from what their cores can do is not known"
COLLECT_CORES: Final = "gapwatch run -- python ./PROGRAM"
COLLECT_RANKS: Final = "record all ranks, and pass the directory that contains their traces"
COLLECT_CALLS: Final = "record the runtime's calls too: ProfilerActivity.CPU, nsys --trace=cuda, rocprofv3 --hip-trace"


def compute_device_bounds(profile: Profile, use: DeviceUse) -> tuple[Bound, ...]:
    """Return all bounds of ``DEVICE_LEVELS`` in their order, in seconds."""
    if use.facts.get("on_host"):
        found = [Bound("R", None, "unavailable", ON_HOSTS, COLLECT_CORES)]
    elif use.peak_s is None:
        found = [Bound("R", None, "unavailable", NO_PEAK, COLLECT_PEAK)]
    else:
        reason = use.reasons.get("kernels", BY_GRIDS)
        found = [Bound("R", float(use.peak_s.mean()), use.status.get("kernels", "estimated"), reason, COLLECT_PEAK)]
    total = float(use.seconds["compute"].mean())
    found.append(Bound("K", total, _status(use, "compute"), use.reasons.get("compute")))
    for level, above in pairwise(DEVICE_LEVELS[2:]):
        gap = str(level.gap)
        total += float(use.seconds[gap].mean())
        next_gap = str(above.gap)
        if next_gap in use.reasons and next_gap not in use.status:
            how = COLLECT_RANKS if next_gap == "imbalance" else COLLECT_CALLS
            found.append(Bound(level.bound, None, "unavailable", use.reasons[next_gap], how))
        else:
            found.append(Bound(level.bound, total, _status(use, gap), use.reasons.get(gap), use.collect))
    return (*found, Bound("actual", profile.actual_s, "measured"))


def _status(use: DeviceUse, level: str) -> Status:
    return use.status.get(level, "measured")


def attribute_device_gaps(profile: Profile, use: DeviceUse, bounds: Sequence[Bound]) -> tuple[Gap, ...]:
    """Return the gaps between known bounds, each with its calls or activities, devices and iterations."""
    known = [bound for bound in bounds if bound.seconds is not None]
    return tuple(_build_gap(profile, use, lower, upper) for lower, upper in pairwise(known))


def _build_gap(profile: Profile, use: DeviceUse, lower: Bound, upper: Bound) -> Gap:
    names = [level.bound for level in DEVICE_LEVELS]
    levels = DEVICE_LEVELS[names.index(lower.name) + 1 : names.index(upper.name) + 1]
    members = tuple(str(level.gap) for level in levels)
    seconds = (upper.seconds or 0.0) - (lower.seconds or 0.0)
    known = dict(use.seconds)
    known["kernels"] = known["compute"] - (0.0 if use.peak_s is None else use.peak_s)
    by_device: FloatArray = np.sum([known[name] for name in members], axis=0) / len(use.devices)
    parts = [cause for cause in use.causes if cause.gap in members]
    phase = profile.phases[0].name
    regions = [Share(cause.name, cause.seconds, phase) for cause in parts]
    rest = seconds - sum(share.seconds for share in regions)
    if abs(rest) > 1e-12:
        regions.append(Share("others", rest, phase))
    iterations = _iteration_shares(use, members, seconds)
    return Gap(
        name="+".join(members), members=members, lower=lower.name, upper=upper.name, seconds=seconds,
        share=seconds / profile.actual_s, status="estimated" if len(members) > 1 else _status(use, members[0]),
        reason=use.reasons.get(members[-1]),
        regions=tuple(regions),
        processors=tuple(Share(name, float(part)) for name, part in zip(use.devices, by_device, strict=True)),
        iterations=iterations,
        causes=tuple(
            Share(f"{cause.name} ({cause.count} times)", cause.seconds, phase, kind=cause.gap) for cause in parts[:10]
        ),
    )  # fmt: skip


def _iteration_shares(use: DeviceUse, members: Sequence[str], seconds: float) -> tuple[Share, ...]:
    if not use.iterations or "kernels" in members:
        return (Share("the whole run", seconds),)
    each: FloatArray = np.sum([use.iterations[name] for name in members], axis=0).mean(axis=0)
    listed = [Share(f"iteration {number}", float(part)) for number, part in enumerate(each, 1)]
    return (*listed, Share("outside iterations", seconds - float(each.sum())))


def find_device_doubts(profile: Profile, use: DeviceUse) -> Iterator[Note]:
    """Yield what limits the evidence of a run with devices."""
    shortest = policy.SHORTEST_COUNTED_RUN_S if use.counted else policy.SHORTEST_DEVICE_RUN_S
    if profile.actual_s < shortest:
        words = f"the recording took {format_seconds(profile.actual_s)}; below {format_seconds(shortest)} "
        words += "nothing is worth a change" if use.counted else "noise decides"
        yield Note("too short", words, 1.0, "record more iterations")
    iterations = int(use.facts.get("iterations", 0))
    if not use.counted and not iterations:
        words = "iterations are not marked: changes between them do not show"
        yield Note("iterations unknown", words, 0.05, "mark them: NVTX or roctx ranges, torch.profiler's step()")
    elif not use.counted and iterations < policy.FEWEST_ITERATIONS:
        yield Note(
            "few iterations",
            f"the profile holds only {format_count(iterations, 'iteration')}",
            0.05,
            "record more iterations",
        )
    estimated = [level for level, status in use.status.items() if status == "estimated"]
    if estimated:
        words = f"estimated: {', '.join(estimated)}; {use.reasons.get(estimated[0], '')}".rstrip("; ")
        yield Note("levels estimated", words, 0.1, use.collect)
    if not use.gains:
        yield Note("not replayed", "the run was not replayed: expected gains of changes are not known")
