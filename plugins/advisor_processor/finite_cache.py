"""The $ of MACS$: how much longer a schedule takes because data are not in the first cache.

Two compositions, both stated with what they assume. Roofline (Williams, Waterman and Patterson, 2009): transfers of all
levels and the schedule overlap perfectly, so the slowest decides: a lower bound. ECM (Treibig and Hager, 2010; Stengel
et al., 2015): transfers between levels follow each other, and only computation overlaps with them. Where loads wait for
each other, or no prefetcher sees what comes next, every miss costs its latency: an upper estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

ASSUMPTION: Final = (
    "roofline: transfers and the schedule overlap perfectly; ECM: transfers follow each other, computation overlaps; "
    "what misses the first cache hits the second, what misses the last one simulated (valgrind's --LL) comes from the "
    "next cache or, behind the last, from memory; lines written go back while others come from a cache, and share the "
    "way to memory"
)
_LINE_B: Final = 64.0
#: A simulated cache stands for the machine's of nearly its size.
_ALIKE: Final = 0.8


@dataclass(frozen=True, slots=True)
class CacheComposition:
    """Seconds of one core: of the schedule, and with the caches by roofline, by ECM, and by latency."""

    schedule_s: float
    roofline_s: float
    ecm_s: float
    latency_s: float


def compose_cache_times(
    macs_cycles: float,
    access_cycles: float,
    misses: Mapping[str, float],
    machine: Machine,
    last_cache_B: float | None = None,
) -> CacheComposition | None:
    """Return the times of a schedule of ``macs_cycles``, ``access_cycles`` of them loads and stores.

    ``misses`` are those of the first (``misses.L1``) and of the last cache simulated, of ``last_cache_B`` bytes
    (``misses.LL``), and the lines written that missed it (``writes.LL``). None where they, or the machine's clock and
    caches, are not known.
    """
    from advisor.analysis.machine_rates import clock_hz

    clock = clock_hz(machine)
    levels = list(machine.caches.values())
    if clock is None or "misses.L1" not in misses or not levels:
        return None
    line = float(levels[0].line or _LINE_B)
    first, last = misses["misses.L1"], misses.get("misses.LL", 0.0)
    near = levels[1] if len(levels) > 1 else None
    near_s = first * line / (near.bandwidth * clock) if near and near.bandwidth else 0.0
    rate, latency_s, shared = _next_level_rates(machine, clock, last_cache_B)
    far_s = (last + (misses.get("writes.LL", 0.0) if shared else 0.0)) * line / rate if rate else 0.0
    schedule_s = macs_cycles / clock
    near_latency = (near.latency or 0.0) / clock if near else 0.0
    return CacheComposition(
        schedule_s=schedule_s,
        roofline_s=max(schedule_s, near_s, far_s),
        ecm_s=max(schedule_s, access_cycles / clock + near_s + far_s),
        latency_s=schedule_s + max(first - last, 0.0) * near_latency + last * latency_s,
    )


def _next_level_rates(machine: Machine, clock: float, last_cache_B: float | None) -> tuple[float | None, float, bool]:
    """Return bytes per second and latency of what lies behind the last cache simulated, and whether writes share it."""
    sizes = [float(cache.size or 0.0) for cache in machine.caches.values()]
    beyond = [place for place, size in enumerate(sizes) if last_cache_B and size > last_cache_B / _ALIKE]
    if beyond:
        cache = list(machine.caches.values())[beyond[0]]
        return (cache.bandwidth * clock if cache.bandwidth else None), (cache.latency or 0.0) / clock, False
    memory = machine.memory
    if memory is None:
        return None, 0.0, True
    return memory.per_core or memory.sustained or memory.bandwidth, float(memory.latency or 0.0), True
