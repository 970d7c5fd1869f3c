"""Attribution by cause: the parts of each gap that findings explain, added up so that each second counts once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.model.devices import DEVICE_LEVELS
from advisor.model.gap_parts import BASES_BY_CERTAINTY, GapAccount
from advisor.model.records import BOUND_NAMES, LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.model.devices import DeviceLevel
    from advisor.model.gap_parts import GapPart
    from advisor.model.records import Bound, Finding, Gap, Level


def build_accounts(gaps: Sequence[Gap], bounds: Sequence[Bound], findings: Iterable[Finding]) -> tuple[GapAccount, ...]:
    """Return the accounts of the gaps of which findings explain a part, in the order of the hierarchy.

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
            place = sum(one.gap in below for one in accounts)
            told = sum(part.seconds for one in accounts[:place] for part in one.parts)
            accounts.insert(place, _build_account(bound.name, bound.seconds or 0.0, held[bound.name], told))
    return tuple(one for one in accounts if one.parts)


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
    """Return the account of one gap, of which parts of other accounts tell ``told_s`` already."""
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
