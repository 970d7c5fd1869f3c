"""How much of the gap $ the caches' misses explain, from whatever counted them: valgrind, LIKWID or PAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.model.gap_parts import GapPart
from advisor.model.records import Finding
from advisor.model.units import format_seconds
from advisor_processor import finite_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.analysis.machines import Machine
    from advisor.model.records import Gap, Profile

#: Misses of the last cache by the name of the level, the deepest first.
_LAST: Final = ("misses.LL", "misses.L4", "misses.L3", "misses.L2")


def build_findings(profile: Profile, gaps: Sequence[Gap], machine: Machine | None) -> tuple[Finding, ...]:
    """Return one finding where the gap $, the misses and the machine's caches are known; seconds per processor."""
    gap = next((one for one in gaps if one.name == "$"), None)
    cycles = _mean_count(profile, "scheduled_cycles")
    if gap is None or machine is None or cycles is None:
        return ()
    last = next((name for name in _LAST if name in profile.counts), None)
    misses = {"misses.L1": _mean_count(profile, "misses.L1"), "misses.LL": _mean_count(profile, last) if last else None}
    known = {name: count for name, count in misses.items() if count is not None}
    composed = finite_cache.compose_cache_times(cycles, 0.0, known, machine)
    if composed is None:
        return ()
    roofline_s, latency_s = (each - composed.schedule_s for each in (composed.roofline_s, composed.latency_s))
    text = (
        f"Of the {format_seconds(gap.seconds)} of the gap $, transfers between caches and memory explain at least "
        f"{format_seconds(roofline_s)} (roofline: they overlap with the schedule and each other), and "
        f"{format_seconds(latency_s)} if every miss were waited for."
    )
    measures = {"gap_s": gap.seconds, "roofline_s": roofline_s, "latency_s": latency_s}
    parts: tuple[GapPart, ...] = ()
    if roofline_s > 0:
        source = "misses counted, with the machine's caches; between transfers that overlap and misses waited for"
        interval = (roofline_s, max(latency_s, roofline_s))
        parts = (GapPart("$", "cache misses", roofline_s, source, "modelled", interval, general=True),)
    return (Finding("processor", "finite cache", "$", text, measures, explains=parts),)


def _mean_count(profile: Profile, name: str) -> float | None:
    """Return a count per processor, None where it was not counted."""
    table = profile.counts.get(name)
    return None if table is None else float(table.sum()) / len(profile.processors)
