"""bounds -> gaps: the seconds between neighbouring known bounds, and where they come from (docs/concepts.md).

A gap takes the letter of the constraint that the upper bound adds; levels without a value merge their letters. The
first known bound and all gaps add up to the actual time. A negative gap is kept and explained, never clipped. What
findings explain of a gap is added up so that each second counts once.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.analysis.device_ladder import attribute_device_gaps
from advisor.analysis.gaps.attribution import ROUNDING, attribute_between, build_source, gap_letters, sum_parts
from advisor.analysis.gaps.gap_causes import find_causes, group_causes
from advisor.analysis.measures import find_system_measures, join_reasons, worst_status
from advisor.model.devices import DEVICE_LEVELS
from advisor.model.gap_parts import BASES_BY_CERTAINTY, GapAccount
from advisor.model.records import BOUND_NAMES, LEVELS, RANKS_ADDED_UP, Bound, Gap, Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.analysis.gaps.attribution import AttributionSource
    from advisor.analysis.gaps.gap_causes import CauseRows
    from advisor.analysis.loads import ProfileLoads, SecondsSpread
    from advisor.analysis.machines import Machine
    from advisor.model.devices import DeviceLevel
    from advisor.model.gap_parts import GapPart
    from advisor.model.records import Finding, FloatArray, IntArray, Level, Profile, Status


#: How many regions, processors or iterations of a gap are listed; the others are added up in one line.
LIMIT: Final = 1000
#: Of a gap that merges more levels than this, no one can say which of them is to blame.
FEW: Final = 2
OTHERS: Final = "others"

SEEN_IO: Final = (
    "this is the input and output that was seen; without CPU times, other operating-system time cannot be separated "
    "from computation"
)
#: Why a gap may be negative, by its letter.
NEGATIVE: Final = {
    "A": "the busiest unit needs less time than the peak rate allows: the machine model and the counts do not fit",
    "C": "the compiler removed operations of the source",
    "S": "the schedule is shorter than its busiest unit allows: the machine model and the counts do not fit",
    "$": "the program computed faster than its schedule allows: the machine model or the counts do not fit",
    "P": "some times are negative by the resolution of the clock",
    "C'": "some times of transfer are negative by the resolution of the clock",
    "O": "CPU times exceed wall times by the resolution of their clocks",
    "S'": "some times of synchronizing are negative by the resolution of the clock",
    "W": "work and synchronization of the deciding processors exceed the time between the boundaries: their clocks are "
    "not quite aligned, they leave a synchronization before the last one, or threads take turns on a core",
    "X": "the phases last longer than the run: their times overlap",
}


def attribute_gaps(
    profile: Profile, bounds: Sequence[Bound], loads: ProfileLoads | None = None, machine: Machine | None = None
) -> tuple[Gap, ...]:
    """Return the gaps between neighbouring bounds that have a value, laid out, in seconds.

    By region (and what lies in none), by processor and by iteration each add up to the gap. ``loads`` spares the pass
    over the arrays (``loads.summarize``), ``machine`` is the model that the bounds were computed with.
    """
    if profile.devices is not None:
        return attribute_device_gaps(profile, profile.devices, bounds)
    origin = build_source(profile, loads, machine)
    rows = group_causes(profile.causes) if profile.causes is not None else None
    known = [bound for bound in bounds if bound.seconds is not None]
    return tuple(_build_gap(origin, rows, bounds, lower, upper) for lower, upper in pairwise(known))


def compute_phase_shares(
    profile: Profile, gap: Gap, loads: ProfileLoads | None = None, machine: Machine | None = None
) -> FloatArray:
    """Return the seconds of ``gap`` in each phase (P,); what lies outside all phases is in none of them."""
    if profile.devices is not None:
        return np.array([gap.seconds])
    origin = build_source(profile, loads, machine)
    lower, upper = _gap_bounds(gap, origin)
    return origin.loads.sum_by_phase(sum_parts(origin, attribute_between(origin, lower, upper)))


def _gap_bounds(gap: Gap, origin: AttributionSource) -> tuple[Bound, Bound]:
    """Return the two bounds of a gap; of machine bounds only their difference is known."""
    upper = origin.values.get(gap.upper, gap.seconds)
    return Bound(gap.lower, upper - gap.seconds, gap.status), Bound(gap.upper, upper, gap.status)


def _build_gap(
    origin: AttributionSource, rows: CauseRows | None, bounds: Sequence[Bound], lower: Bound, upper: Bound
) -> Gap:
    seconds = (upper.seconds or 0.0) - (lower.seconds or 0.0)
    members = gap_letters(origin, lower.name, upper.name)
    pieces = attribute_between(origin, lower, upper)
    spread = sum_parts(origin, pieces)
    actual = origin.profile.actual_s
    gap = Gap(
        name="+".join(members),
        members=members,
        lower=lower.name,
        upper=upper.name,
        seconds=seconds,
        share=seconds / actual if actual else 0.0,
        status=_gap_status(origin, lower, upper),
        regions=_region_shares(origin, spread),
        processors=_processor_shares(origin, spread),
        iterations=_iteration_shares(origin, spread),
        causes=find_causes(origin, rows, pieces, seconds),
    )
    return replace(gap, reason=_explain_gap(origin.profile, gap, bounds, lower, upper))


def _gap_status(origin: AttributionSource, lower: Bound, upper: Bound) -> Status:
    """Return how sure a gap is: as its bounds; of I/O seen alone as that, whatever else the lower bound holds."""
    if lower.name == "IPC" and origin.loads.quantities.all_but_io:
        seen = (origin.profile.status.get(name, "measured") for name in find_system_measures(origin.profile))
        return worst_status((*seen, upper.status))
    return worst_status((lower.status, upper.status))


def _explain_gap(profile: Profile, gap: Gap, bounds: Sequence[Bound], lower: Bound, upper: Bound) -> str | None:
    """Return what keeps a gap from being single, measured and positive."""
    reasons: list[str | None] = []
    between_them = bounds[BOUND_NAMES.index(lower.name) + 1 : BOUND_NAMES.index(upper.name)]
    for why in dict.fromkeys(bound.reason for bound in between_them):
        names = ", ".join(bound.name for bound in between_them if bound.reason == why)
        reasons.append(f"without {names}: {', '.join((why or 'not known').split('; '))}")
    if lower.status != "measured":
        reasons.append(lower.reason)
    reasons.append(upper.reason)
    if "O" in gap.members and not profile.has_measure("cpu_s") and profile.has_measure("io_s"):
        reasons.append(SEEN_IO)
    if gap.seconds < -ROUNDING * profile.actual_s:
        causes = [NEGATIVE[member] for member in gap.members if member in NEGATIVE]
        few = causes if len(causes) <= FEW else []
        reasons.append(f"negative: {', or '.join(few) or 'the times do not fit together'}")
    return join_reasons(reasons)


def _region_shares(origin: AttributionSource, spread: SecondsSpread) -> tuple[Share, ...]:
    """Return the seconds by region of each phase, the largest first, with what lies in no region and in no phase."""
    profile = origin.profile
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *(phase.regions for phase in profile.phases)])
    phase_of = np.repeat(np.arange(len(profile.phases)), np.diff(origin.loads.region_first))
    everything = np.concatenate((spread.regions, spread.rest))
    chosen = _select_largest(everything)

    def make_share(place: int) -> Share:
        seconds = float(everything[place])
        if place >= len(indices):
            return Share("in no region", seconds, profile.phases[place - len(indices)].name)
        region = profile.regions[indices[place]]
        return Share(region.name, seconds, profile.phases[phase_of[place]].name, region.file, region.line)

    outside = [Share(name, seconds) for name, seconds in spread.outside.items() if seconds]
    listed = sorted([make_share(int(place)) for place in chosen] + outside, key=lambda each: -each.seconds)
    return (*listed, *_sum_others(everything, chosen))


def _processor_shares(origin: AttributionSource, spread: SecondsSpread) -> tuple[Share, ...]:
    if any(note.name == RANKS_ADDED_UP for note in origin.profile.notes):
        return ()
    chosen = _select_largest(spread.processors)
    ordered = chosen[np.argsort(-spread.processors[chosen], kind="stable")]
    listed = [Share(origin.profile.processors[q].name, float(spread.processors[q])) for q in ordered]
    return (*listed, *_sum_others(spread.processors, chosen))


def _iteration_shares(origin: AttributionSource, spread: SecondsSpread) -> tuple[Share, ...]:
    """Return the seconds by iteration of each phase, in their order, with what lies in no phase."""
    first, phases = origin.loads.iteration_first, origin.profile.phases
    phase_of = np.repeat(np.arange(len(phases)), np.diff(first))
    chosen = _select_largest(spread.iterations)
    listed = [
        Share(
            f"iteration {place - first[phase_of[place]] + 1}",
            float(spread.iterations[place]),
            phases[phase_of[place]].name,
        )
        for place in chosen
    ]
    outside = [Share(name, seconds) for name, seconds in spread.outside.items() if seconds]
    return (*listed, *outside, *_sum_others(spread.iterations, chosen))


def _select_largest(values: FloatArray) -> IntArray:
    """Return where the values are that are worth a line, in order: all but zeros, the largest if there are many."""
    some = np.flatnonzero(values)
    if len(some) > LIMIT:
        some = np.sort(some[np.argpartition(-np.abs(values[some]), LIMIT)[:LIMIT]])
    return some


def _sum_others(values: FloatArray, chosen: IntArray) -> tuple[Share, ...]:
    """Return one line for all values that were not chosen."""
    if len(chosen) == np.count_nonzero(values):
        return ()
    left = np.ones(len(values), dtype=bool)
    left[chosen] = False
    return (Share(OTHERS, float(values[left].sum())),)


def build_accounts(gaps: Sequence[Gap], bounds: Sequence[Bound], findings: Iterable[Finding]) -> tuple[GapAccount, ...]:
    """Return the accounts of all gaps that findings explain in part, in the order of the hierarchy.

    A part counts for what surer parts of its cause do not explain in its regions already, a general one for what no
    other part explains there; together they never exceed the gap. Parts of gaps below the lowest known bound are
    accounted for in that bound, which holds them. The order of the findings changes nothing.
    """
    held: dict[str, list[GapPart]] = {}
    for part in (part for finding in findings for part in finding.explains):
        name = find_account_name(part, gaps, bounds)
        if name is not None:
            held.setdefault(name, []).append(part)
    levels = [level.bound for level in _find_ladder(bounds)]
    accounts = [_build_account(gap.name, gap.seconds, held[gap.name]) for gap in gaps if gap.name in held]
    for bound in bounds:
        if bound.name in held:
            height = levels.index(bound.name)
            below = {gap.name for gap in gaps if levels.index(gap.upper) <= height} | {*levels[:height]}
            place = sum(account.gap in below for account in accounts)
            told = sum(part.seconds for account in accounts[:place] for part in account.parts)
            accounts.insert(place, _build_account(bound.name, bound.seconds or 0.0, held[bound.name], told))
    return tuple(account for account in accounts if account.parts)


def find_account_name(part: GapPart, gaps: Sequence[Gap], bounds: Sequence[Bound]) -> str | None:
    """Return the name of the gap, or of the bound, that holds a part; None where neither is known."""
    holding = next((gap.name for gap in gaps if part.gap in gap.members), None)
    if holding is not None:
        return holding
    known = [bound.name for bound in bounds if bound.seconds is not None]
    if part.gap in known or not known:
        return part.gap if known else None
    ladder = _find_ladder(bounds)
    height = [level.bound for level in ladder].index(known[0])
    return known[0] if part.gap in [level.gap for level in ladder[: height + 1]] else None


def _find_ladder(bounds: Sequence[Bound]) -> Sequence[Level | DeviceLevel]:
    """Return the levels of the hierarchy that the bounds are of: that of a run on CPUs, or of one with devices."""
    return LEVELS if all(bound.name in BOUND_NAMES for bound in bounds) else DEVICE_LEVELS


def _build_account(name: str, seconds: float, parts: Iterable[GapPart], told_s: float = 0.0) -> GapAccount:
    """Return the account of one gap; parts of other accounts explain ``told_s`` of it already."""
    left = max(seconds - told_s, 0.0)
    explained: dict[str, dict[str, float]] = {}
    counted = []
    for part in sorted(parts, key=_order_of_part):
        amount = min(max(part.seconds - _sum_explained(part, explained), 0.0), left)
        if amount <= 0:
            continue
        left -= amount
        places = part.regions or ("",)
        mine = explained.setdefault(part.cause, {})
        mine.update({place: mine.get(place, 0.0) + amount / len(places) for place in places})
        counted.append(_restrict_part(part, amount, seconds))
    return GapAccount(name, seconds, tuple(counted))


def _order_of_part(part: GapPart) -> tuple[object, ...]:
    """Sorts specific parts before general ones, then the surest, those of few regions, and the largest first."""
    certainty = BASES_BY_CERTAINTY.index(part.basis)
    return part.general, certainty, not part.regions, len(part.regions), -part.seconds, part.cause, part.regions


def _sum_explained(part: GapPart, explained: Mapping[str, Mapping[str, float]]) -> float:
    """Return the seconds that parts before this one explain in its regions, where they may be the same seconds."""
    causes = explained.values() if part.general else [explained.get(part.cause, {})]
    return sum(
        seconds
        for places in causes
        for place, seconds in places.items()
        if not part.regions or not place or place in part.regions
    )


def _restrict_part(part: GapPart, seconds: float, most_s: float) -> GapPart:
    """Return the part with the seconds that count; its interval in proportion, within the gap."""
    if part.interval_s is None:
        return replace(part, seconds=seconds)
    share = seconds / part.seconds
    low, high = (min(end * share, most_s) for end in part.interval_s)
    return replace(part, seconds=seconds, interval_s=(min(low, seconds), max(high, seconds)))
