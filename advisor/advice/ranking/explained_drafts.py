"""Actions whose seconds a finding explains: about that part alone, at its regions, and before general advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.advice.ranking.ceilings import GapBudget, compute_confidence
from advisor.advice.ranking.drafts import Draft, compute_digest
from advisor.advice.ranking.gains import ExpectedGain
from advisor.advice.rules.conditions import FactIs
from advisor.model import policy, units
from advisor.model.gap_parts import GapAccount, GapPart, describe_cause
from advisor.model.lists import join_names

if TYPE_CHECKING:
    from advisor.advice.rules import RuleMatches
    from advisor.model.records import Profile

#: Changes of how the program is built and started, that change all that was measured of it.
_OF_BUILDS: Final = frozenset({("cpu", "optimized"), ("threads", "all cores")})
#: Facts that say how large a place is, and nothing about what costs its seconds.
_SIZES: Final = frozenset({"phase.share"})


def sum_explained(matches: RuleMatches, accounts: Iterable[GapAccount], budget: GapBudget) -> Mapping[str, float]:
    """Return the seconds of each gap that findings put down to causes against which an action fires."""
    fired = {match.action.id for match in matches.fired}
    found: dict[str, float] = {}
    for part in (part for account in accounts for part in account.parts):
        if not part.general and not fired.isdisjoint(part.actions):
            name = budget.find_gap_with(part.gap)
            found[name] = found.get(name, 0.0) + part.seconds
    return found


def explain_drafts(
    drafts: Iterable[Draft], accounts: Sequence[GapAccount], profile: Profile, budget: GapBudget
) -> Iterator[Draft]:
    """Yield the drafts; of an action that specific parts of gaps name, one for each of these parts."""
    parts = [(account, part) for account in accounts for part in account.parts if not part.general]
    for draft in drafts:
        mine = [(account, part) for account, part in parts if draft.match.action.id in part.actions]
        for account, part in mine:
            yield _explain_draft(draft, account, part, profile, budget)
        if not mine:
            yield draft


def _explain_draft(draft: Draft, account: GapAccount, part: GapPart, profile: Profile, budget: GapBudget) -> Draft:
    """Return the draft about one part: its regions are the place, its seconds the ceiling."""
    made, high = draft.recommendation, part.interval_s[1] if part.interval_s else part.seconds
    place = next((region for region in profile.regions if region.name in part.regions), None)
    known = next((gap for gap in made.gaps if part.gap in gap.split("+")), part.gap)
    most = min(max(high, part.seconds), account.seconds)
    better = replace(
        made,
        gaps=(known,),
        region=join_names(part.regions) or made.region,
        file=place.file if place else None,
        line=place.line if place else None,
        ceiling_s=most,
        confidence=compute_confidence(budget, draft.match, (), most, policy.STATUS_CERTAINTY[part.basis]),
        why=f"{describe_part(part)} {made.why}",
        fingerprint=compute_digest(made.fingerprint, part.cause, *part.regions),
    )
    return replace(draft, recommendation=better, part=part)


def describe_part(part: GapPart) -> str:
    """Return in a sentence what a part costs and how that is known."""
    span = ""
    if part.interval_s:
        low, high = map(units.format_seconds, part.interval_s)
        span = f" ({low} to {high})"
    cause = describe_cause(part)
    return (
        f"{cause[:1].upper()}{cause[1:]} costs {units.format_seconds(part.seconds)}{span}, {part.basis}: {part.source}."
    )


def explained_gain(part: GapPart | None) -> ExpectedGain | None:
    """Return what removing a part wins, where that was measured."""
    if part is None or not part.removable:
        return None
    low, high = part.interval_s or (0.0, part.seconds)
    return ExpectedGain(part.seconds, low, high, "experiment")


def is_general(draft: Draft) -> bool:
    """Return whether an action asks only how large several gaps are: it says where to look, and not what costs time."""
    leaves = draft.match.action.comparisons
    asked = {leaf.gap for leaf in leaves if not isinstance(leaf, FactIs)}
    sizes = all(leaf.fact in _SIZES for leaf in leaves if isinstance(leaf, FactIs))
    return len(asked) > 1 and sizes and draft.recommendation.expected_s is None


def put_known_first(ordered: Sequence[Draft]) -> list[Draft]:
    """Return the drafts in their order, those with an expected gain before guesses that usually win less.

    A guess is an action of which only the ceiling is known; little effort does not put it before what is known.
    """
    result: list[Draft] = []
    for draft in ordered:
        place = len(result)
        while place and _is_guess_below(result[place - 1], draft):
            place -= 1
        result.insert(place, draft)
    return result


def _is_guess_below(other: Draft, expected: Draft) -> bool:
    """Return whether only the ceiling of a draft is known, and it usually wins less than is expected of the other."""
    made, known = other.recommendation, expected.recommendation
    if made.expected_s is not None or known.expected_s is None:
        return False
    return other.score * made.effort < expected.score * known.effort


def put_builds_first(ordered: Sequence[Draft]) -> list[Draft]:
    """Return the drafts in their order, optimization and use of all cores before what wins less than twice as much.

    Serial parts, imbalance and whoever waits for them are shorter in the optimized program as well: what was measured
    of the others in this one says little about the next.
    """
    result: list[Draft] = []
    for draft in ordered:
        place = len(result)
        if not _OF_BUILDS.isdisjoint(draft.match.action.change.items()):
            least_s = _usual_gain_s(draft) / policy.BUILD_FIRST
            while place and _usual_gain_s(result[place - 1]) < least_s:
                place -= 1
        result.insert(place, draft)
    return result


def _usual_gain_s(draft: Draft) -> float:
    made = draft.recommendation
    return made.expected_s if made.expected_s is not None else made.ceiling_s * draft.match.action.typical_fraction


def put_general_last(ordered: Sequence[Draft]) -> list[Draft]:
    """Return the drafts in their order, general ones behind the specific ones that are about a gap of theirs.

    So a new measurement, which lets general advice apply, never hides what is known in more detail.
    """
    result: list[Draft] = []
    waiting: list[Draft] = []
    for number, draft in enumerate(ordered):
        later = [one for one in ordered[number + 1 :] if not is_general(one)]
        if is_general(draft) and any(_share_gap(draft, one) for one in later):
            waiting.append(draft)
            continue
        result.append(draft)
        ready = [one for one in waiting if not any(_share_gap(one, other) for other in later)]
        result += ready
        waiting = [one for one in waiting if one not in ready]
    return [*result, *waiting]


def _share_gap(general: Draft, specific: Draft) -> bool:
    """Return whether two drafts are about seconds of one gap."""
    return not {gap for _, gap in general.claims}.isdisjoint(gap for _, gap in specific.claims)
