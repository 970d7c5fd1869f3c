"""Coupling estimated without an experiment: kernels that a trace shows in different orders.

Where a kernel follows now one and now another kernel, the ratio of what it takes tells how the two leave it behind.
This is no coupling by formula 1, since nothing ran by itself; and what makes the program choose the order may also be
what makes the kernel slow. So it is called an estimate, and an experiment settles it. Own method, not the source's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.model import units
from advisor.model.gap_parts import GapPart
from advisor.model.records import Finding, FloatArray, IntArray
from advisor.trace.events import Kind, Role, Trace
from advisor_coupling import intervals
from advisor_coupling.coupling_facts import COMMAND

if TYPE_CHECKING:
    from advisor_coupling.intervals import Estimate

#: Events of a trace whose order is looked at, at most: all its calls are in memory then.
EVENTS_AT_MOST: Final = 2_000_000
#: So often must a kernel follow each of two others.
_OFTEN: Final = 10
#: Smaller differences, and those of less than this share of the trace, are left alone.
_RATIO: Final = 1.05
_SHARE: Final = 0.01
_MOST: Final = 5
#: Draws are kept this many at a time.
_AT_ONCE: Final = 2000


@dataclass(frozen=True, slots=True)
class KernelOrder:
    """A kernel that takes ``ratio`` times as long after ``after`` as after ``instead``; ``seconds`` it costs in all."""

    kernel: str
    after: str
    instead: str
    ratio: Estimate
    seconds: float


def build_findings(trace: Trace) -> list[Finding]:
    """Return the orders that cost most as findings; none for a trace that is too long to look at."""
    if len(trace.kind) > EVENTS_AT_MOST:
        return []
    return [_build_finding(one, len(trace.locations)) for one in estimate_orders(trace)]


def _build_finding(one: KernelOrder, locations: int) -> Finding:
    value = one.ratio
    text = (
        f"{one.kernel} takes {value.value:.3g} times as long ({value.low:.3g} to {value.high:.3g}) after {one.after} "
        f"as after {one.instead}: {units.format_seconds(abs(one.seconds))} in all, estimated from the order "
        f"in the trace. Whether they couple, {COMMAND} tells."
    )
    measures = {"ratio": value.value, "low": value.low, "high": value.high, "lost_s": one.seconds}
    source = f"{one.kernel} after {one.after} against {one.kernel} after {one.instead}, in the trace"
    part = GapPart("$", "order of kernels", max(one.seconds, 0.0) / locations, source, "estimated", None, (one.kernel,))
    return Finding("", "order of kernels", f"{one.after},{one.kernel}", text, measures, explains=(part,))


def estimate_orders(trace: Trace) -> list[KernelOrder]:
    """Return the orders that cost most, beyond noise: the medians' ratio with its bootstrap interval.

    Kernels are the innermost user regions; the calls of a location follow each other in recorded order.
    """
    region, before, seconds = find_innermost_calls(trace)
    span = float(trace.time_s.max() - trace.time_s.min()) if len(trace.time_s) else 0.0
    found = []
    for kernel in np.unique(region):
        mine = region == kernel
        groups = {int(one): seconds[mine & (before == one)] for one in np.unique(before[mine]) if one >= 0}
        groups = {one: times for one, times in groups.items() if len(times) >= _OFTEN}
        found += _compare_predecessors(trace, int(kernel), groups, span)
    return sorted(found, key=lambda one: -one.seconds)[:_MOST]


def _compare_predecessors(trace: Trace, kernel: int, groups: dict[int, FloatArray], span: float) -> list[KernelOrder]:
    """Return the predecessors after which a kernel is slower than after the one that suits it best."""
    if len(groups) < 2:
        return []
    best = min(groups, key=lambda one: float(np.median(groups[one])))
    found = []
    for other, times in groups.items():
        if other == best or np.median(groups[best]) <= 0:
            continue
        ratio = _estimate_ratio(times, groups[best])
        lost = float(len(times) * (np.median(times) - np.median(groups[best])))
        if ratio.low > _RATIO and lost > _SHARE * span:
            name, after, instead = (trace.regions[index].name for index in (kernel, other, best))
            found.append(KernelOrder(name, after, instead, ratio, lost))
    return found


def _estimate_ratio(slow: FloatArray, fast: FloatArray) -> Estimate:
    random = np.random.default_rng(1)
    slow, fast = slow[:_AT_ONCE], fast[:_AT_ONCE]
    draws = [_resample_medians(random, one) for one in (slow, fast)]
    values = np.concatenate([[np.median(slow) / np.median(fast)], draws[0] / draws[1]])
    return intervals.estimate_interval(values, min(len(slow), len(fast)))


def _resample_medians(random: np.random.Generator, series: FloatArray) -> FloatArray:
    drawn = random.integers(0, len(series), size=(500, len(series)))
    return np.asarray(np.median(series[drawn], axis=1))


def find_innermost_calls(trace: Trace) -> tuple[IntArray, IntArray, FloatArray]:
    """Return for each innermost call of a user region: the region, the one before it (-1: none), and its seconds.

    A call is innermost where its leave directly follows its enter; what lies between calls does not matter.
    """
    entered = np.flatnonzero(trace.kind[:-1] == Kind.ENTER) if len(trace.kind) else np.empty(0, dtype=np.int64)
    same = (trace.kind[entered + 1] == Kind.LEAVE) & (trace.region[entered] == trace.region[entered + 1])
    user = np.array([one.role == Role.USER for one in trace.regions] or [False])
    inside = entered[same]
    inside = inside[user[trace.region[inside]]]
    location = np.searchsorted(trace.first, inside, side="right")
    region = trace.region[inside].astype(np.int64)
    before = np.full(len(inside), -1, dtype=np.int64)
    if len(inside) > 1:
        follows = location[1:] == location[:-1]
        before[1:][follows] = region[:-1][follows]
    return region, before, trace.time_s[inside + 1] - trace.time_s[inside]
