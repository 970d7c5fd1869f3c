"""The $ of MACS$: how much longer a schedule takes because data are not in the first cache.

Two compositions, both stated with what they assume. Roofline (Williams, Waterman and Patterson, 2009): transfers of all
levels and the schedule overlap perfectly, so the slowest decides: a lower bound. ECM (Treibig and Hager, 2010; Stengel
et al., 2015): transfers between levels follow each other, and only computation overlaps with them. Where loads wait for
each other, or no prefetcher sees what comes next, every miss costs its latency: an upper estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.machines import Machine

ASSUMPTION: Final = (
    "roofline: transfers and the schedule overlap perfectly; ECM: transfers follow each other, computation overlaps; "
    "misses of the first cache are taken to hit the second, and lines that are written go back once"
)
_LINE_B: Final = 64.0


@dataclass(frozen=True, slots=True)
class Composition:
    """Seconds of one core: of the schedule, and with the caches by roofline, by ECM, and by latency."""

    schedule_s: float
    roofline_s: float
    ecm_s: float
    latency_s: float


def compose(
    macs_cycles: float, access_cycles: float, misses: Mapping[str, float], machine: Machine
) -> Composition | None:
    """Return the times of a schedule of ``macs_cycles``, ``access_cycles`` of them loads and stores.

    ``misses`` are those of the first (``misses.L1``) and the last cache (``misses.LL``), and the written lines that
    missed (``writes.LL``). None where they, or the machine's clock and bandwidths, are not known.
    """
    from advisor.machines import clock_hz

    clock = clock_hz(machine)
    levels = list(machine.caches.values())
    memory = machine.memory
    if clock is None or "misses.L1" not in misses or not levels or memory is None:
        return None
    line = float(levels[0].line or _LINE_B)
    second = levels[1] if len(levels) > 1 else None
    first_misses, last_misses = misses["misses.L1"], misses.get("misses.LL", 0.0)
    near_s = first_misses * line / (second.bandwidth * clock) if second and second.bandwidth else 0.0
    bandwidth = memory.per_core or memory.sustained or memory.bandwidth
    far_s = (last_misses + misses.get("writes.LL", 0.0)) * line / bandwidth if bandwidth else 0.0
    schedule_s = macs_cycles / clock
    near_latency = (second.latency or 0.0) / clock if second else 0.0
    waiting_s = max(first_misses - last_misses, 0.0) * near_latency + last_misses * (memory.latency or 0.0)
    return Composition(
        schedule_s=schedule_s,
        roofline_s=max(schedule_s, near_s, far_s),
        ecm_s=max(schedule_s, access_cycles / clock + near_s + far_s),
        latency_s=schedule_s + waiting_s,
    )
