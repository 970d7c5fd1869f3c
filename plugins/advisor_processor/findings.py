"""What counts explain of the gaps of computation: misses, from whatever counted them, and the code of loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.model.gap_parts import GapPart
from advisor.model.records import Finding, Gap, Profile
from advisor.model.units import format_seconds
from advisor_processor import finite_cache

if TYPE_CHECKING:
    from advisor.analysis.machines import Machine

#: Misses of the last cache by the name of the level, the deepest first.
_LAST: Final = ("misses.LL", "misses.L4", "misses.L3", "misses.L2")
#: A trait of fewer of a gap's seconds is not worth a word.
_LEAST_SHARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class _LoopTrait:
    """What the code of loops shows: the gap it costs, and the counts whose quotient is the share of a region's seconds.

    ``counted`` says in words what was counted.
    """

    gap: str
    cause: str
    part: str
    whole: str
    action: str
    counted: str


_TRAITS: Final = (
    _LoopTrait("$", "stride", "strided_loads", "compiled_ops.load", "P-3", "loads that step over numbers"),
    _LoopTrait("S", "chains of operations", "chained_cycles", "scheduled_cycles", "P-2", "cycles in dependent chains"),
    _LoopTrait("C", "spilled registers", "spilled_loads", "compiled_ops.load", "P-4", "loads of spilled values"),
)


def build_findings(profile: Profile, gaps: Sequence[Gap], machine: Machine | None) -> tuple[Finding, ...]:
    """Return what counts of compiled loops and of misses explain of the gaps above them; seconds per processor."""
    found = [_find_trait(profile, gap, trait) for trait in _TRAITS for gap in gaps if gap.name == trait.gap]
    return (*_find_misses(profile, gaps, machine), *(one for one in found if one is not None))


def _find_trait(profile: Profile, gap: Gap, trait: _LoopTrait) -> Finding | None:
    """Return how much of a gap lies in loops of a kind: of each region the share of its counts that are of it."""
    part, whole = profile.counts.get(trait.part), profile.counts.get(trait.whole)
    if part is None or whole is None or gap.seconds <= 0:
        return None
    shares = {
        region.name: float(part[row].sum() / whole[row].sum())
        for row, region in enumerate(profile.regions)
        if whole[row].sum() > 0
    }
    seconds: dict[str, float] = {}
    for share in gap.regions:
        seconds[share.name] = seconds.get(share.name, 0.0) + max(share.seconds, 0.0) * shares.get(share.name, 0.0)
    total = sum(seconds.values())
    if total < _LEAST_SHARE * gap.seconds:
        return None
    regions = tuple(name for name in seconds if seconds[name] >= _LEAST_SHARE * total)
    text = (
        f"{format_seconds(total)} of the gap {gap.name} lie in loops of {', '.join(regions)} in proportion to their "
        f"{trait.counted}."
    )
    source = f"{trait.counted}, counted in the compiled loops; the seconds of {gap.name} there in proportion"
    explains = (GapPart(gap.name, trait.cause, total, source, "estimated", None, regions, (trait.action,)),)
    return Finding("processor", trait.cause, gap.name, text, {"seconds": total}, explains=explains)


def _find_misses(profile: Profile, gaps: Sequence[Gap], machine: Machine | None) -> tuple[Finding, ...]:
    """Return one finding where the gap $, the misses and the machine's caches are known."""
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
