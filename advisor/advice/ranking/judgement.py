"""Recommendations by what a simulation of each change says: all remedies that could apply, not only what fires.

A rule's thresholds don't matter here; its ``requires`` does, and what its change wins on the recorded run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, overload

from advisor.advice.counterfactuals import Candidate
from advisor.advice.facts.places import is_significant
from advisor.advice.ranking.drafts import build_drafts
from advisor.advice.ranking.effects import NOWHERE
from advisor.advice.ranking.outlook import matters_at_target
from advisor.advice.rules.matching import find_possible
from advisor.analysis.disturbance import undisturbed_seconds
from advisor.model import policy
from advisor.model.recommendations import Dismissed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from advisor.advice.counterfactuals import Counterfactual
    from advisor.advice.ranking.ceilings import GapBudget
    from advisor.advice.ranking.drafts import Draft
    from advisor.advice.ranking.outlook import Outlook
    from advisor.advice.rules import RuleMatches
    from advisor.model.records import Profile

    #: Says of each candidate what it would have won; None for one that can't be simulated, or for all.
    Judge = Callable[[Sequence[Candidate]], Sequence[Counterfactual | None] | None]


#: Changes of calls that lie in many phases, of which one alone may change nothing.
_REPEATED: Final = frozenset({"barriers", "reductions", "phases", "threads"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a simulation says of drafts: ``items`` in the order of what they win, and the rest.

    ``others`` are drafts of rules that fire and that the simulation can't tell; ``dismissed`` what is no help, and what
    was not simulated.
    """

    items: tuple[Draft, ...]
    others: tuple[Draft, ...]
    dismissed: tuple[Dismissed, ...]


def judge_drafts(matches: RuleMatches, profile: Profile, budget: GapBudget, judge: Judge) -> Judgement | None:
    """Return what a simulation says of all remedies that could apply; None where none can be simulated."""
    fired = {(one.action.id, id(one.site)) for one in matches.fired}
    candidates = _PossibleChanges(matches, profile, budget, fired)
    found = judge(candidates)
    if found is None:
        return None
    made = candidates.drafts
    conflicting = {one.action.id for one in matches.fired} | {
        draft.match.action.id for (draft, _), won in zip(made, found, strict=True) if won is not None and won.order >= 0
    }
    chosen: dict[int, Draft] = {}
    others, dismissed = [], []
    for number, ((draft, same), won) in enumerate(zip(made, found, strict=True)):
        if won is None or not won.simulated:
            others += [one for one in (draft, *same) if (one.match.action.id, id(one.match.site)) in fired]
        elif won.order >= 0:
            chosen[number] = _place_draft(_set_gain(draft, won, conflicting), won, profile)
            for other in same:
                chosen[number] = _add_alternative(chosen[number], other)
        if won is not None and won.order < 0 and won.instead_of < 0:
            dismissed.append(_dismiss_draft(draft, won, profile))
    for number, won in enumerate(found):
        if won is not None and won.instead_of in chosen:
            chosen[won.instead_of] = _add_alternative(chosen[won.instead_of], made[number][0])
    placed = [(won.order, number) for number, won in enumerate(found) if won is not None and number in chosen]
    return Judgement(tuple(chosen[number] for _, number in sorted(placed)), tuple(others), tuple(dismissed))


class _PossibleChanges(Sequence[Candidate]):
    """The changes that could be made, which are looked for once somebody asks: most runs can't be simulated."""

    def __init__(
        self, matches: RuleMatches, profile: Profile, budget: GapBudget, fired: Collection[tuple[str, int]]
    ) -> None:
        self._matches, self._profile, self._budget, self._fired = matches, profile, budget, fired

    @cached_property
    def drafts(self) -> list[tuple[Draft, list[Draft]]]:
        """A draft for each change in each place, with the others that make the same change there."""
        everything = replace(self._matches, fired=find_possible(self._matches))
        return _group_by_change(build_drafts(everything, self._profile, self._budget), self._fired)

    @cached_property
    def _candidates(self) -> tuple[Candidate, ...]:
        return tuple(_build_candidate(draft) for draft, _ in self.drafts)

    def __len__(self) -> int:
        return len(self._candidates)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Candidate, ...]: ...

    def __getitem__(self, at: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self._candidates[at]


def _group_by_change(made: Iterable[Draft], fired: Collection[tuple[str, int]]) -> list[tuple[Draft, list[Draft]]]:
    """Return a draft for each change in each place, with the others that make the same change there.

    The one whose rule fires leads, then the one whose gaps hold most.
    """
    groups: dict[tuple[object, ...], list[Draft]] = {}
    for draft in made:
        candidate = _build_candidate(draft)
        groups.setdefault((*candidate.change.items(), candidate.phases), []).append(draft)
    found = []
    for group in groups.values():
        group.sort(
            key=lambda one: ((one.match.action.id, id(one.match.site)) not in fired, -one.recommendation.ceiling_s)
        )
        found.append((group[0], group[1:]))
    return found


def _build_candidate(draft: Draft) -> Candidate:
    action = draft.match.action
    whole = draft.whole or not _REPEATED.isdisjoint(action.change)
    phases = () if whole else tuple(sorted({p for site in draft.sites for p in site}))
    ceiling_s = draft.recommendation.ceiling_s
    return Candidate(action.id, action.change, phases, action.effort, action.typical_fraction, ceiling_s)


def _set_gain(draft: Draft, won: Counterfactual, conflicting: set[str]) -> Draft:
    """Return the draft with what its change wins.

    Its ceiling holds at least the interval's upper end, and what is won where all that it is about costs nothing.
    """
    made = draft.recommendation
    gain = won.gain_s if won.gain_s >= won.further_s else won.further_s
    shift = gain - won.gain_s
    low_s = won.low_s if won.assumed else won.low_s + shift
    better = replace(
        made,
        expected_s=gain,
        interval_s=(max(low_s, 0.0), won.high_s + shift),
        basis="simulation",
        ceiling_s=max(made.ceiling_s, won.high_s + shift, won.most_s),
        conflicts=tuple(str(other) for other in draft.match.action.conflicts if other in conflicting),
        why=f"{made.why} {won.assumed}".strip(),
    )
    return replace(draft, recommendation=better, further_s=won.further_s)


def _place_draft(draft: Draft, won: Counterfactual, profile: Profile) -> Draft:
    """Return the draft at the region that the change is about, with the others where it is about several.

    The one that the rule names comes first if it is one of them.
    """
    made, regions = draft.recommendation, won.regions or ((won.region,) if won.region else ())
    if regions and made.region not in regions:
        region = next((each for each in profile.regions if each.name == regions[0]), None)
        if region is not None and region.name not in NOWHERE:
            made = replace(made, region=region.name, file=region.file, line=region.line)
    more = tuple(name for name in won.regions if name != made.region)
    return replace(draft, recommendation=replace(made, more_regions=more))


def _add_alternative(draft: Draft, other: Draft) -> Draft:
    made, action = draft.recommendation, other.match.action.id
    if action == made.action or action in made.alternatives:
        return draft
    return replace(draft, recommendation=replace(made, alternatives=(*made.alternatives, action)))


def _dismiss_draft(draft: Draft, won: Counterfactual, profile: Profile) -> Dismissed:
    made = draft.recommendation
    if not won.simulated:
        return Dismissed(made.action, made.title, made.phase, None)
    is_large = is_significant(won.gain_s, undisturbed_seconds(profile), simulated=profile.is_simulated)
    return Dismissed(made.action, made.title, made.phase, won.gain_s, (won.low_s, won.high_s) if is_large else None)


def order_judgement(found: Judgement, profile: Profile, outlook: Outlook) -> list[Draft]:
    """Return all drafts in one order; what can't be simulated stands where its typical fraction puts it."""
    worth = [
        draft
        for draft in found.others
        if is_significant(_typical_s(draft), undisturbed_seconds(profile), simulated=profile.is_simulated)
        or matters_at_target(draft, outlook)
    ]
    left = sorted(worth, key=lambda draft: draft.sort_key)
    result: list[Draft] = []
    for draft in found.items:
        seconds = (draft.further_s or 0.0) * draft.recommendation.confidence
        while left and _usual_s(left[0]) > seconds:
            result.append(left.pop(0))
        result.append(draft)
    return [*result, *left]


def _usual_s(draft: Draft) -> float:
    """Return the seconds that a change usually wins, as sure as that is: as measured, else by its typical fraction."""
    made = draft.recommendation
    always = made.basis == "calibration" and made.interval_s is not None and made.interval_s[0] > 0
    sure = 1.0 if made.basis == "experiment" or always else policy.UNTRIED
    return _typical_s(draft) * made.confidence * sure


def _typical_s(draft: Draft) -> float:
    """Return the seconds that a change usually wins where it works: as measured, else by its typical fraction."""
    made = draft.recommendation
    if made.basis == "experiment":
        return made.expected_s or 0.0
    return made.ceiling_s * draft.match.action.typical_fraction
