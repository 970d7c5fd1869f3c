"""Fired rules -> ranked recommendations: one per cause, their combined saving, and the steps to revisit."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from advisor.advice.facts.places import is_significant
from advisor.advice.ranking.ceilings import GapBudget, build_gap_budget, compute_ceiling
from advisor.advice.ranking.drafts import Claim, Draft, build_drafts, compute_digest, restrict_draft
from advisor.advice.ranking.explained_drafts import (
    explain_drafts,
    explained_gain,
    put_builds_first,
    put_general_last,
    put_known_first,
    sum_explained,
)
from advisor.advice.ranking.gains import ExpectedGain, cap_gain
from advisor.advice.ranking.judgement import judge_drafts, order_judgement
from advisor.advice.ranking.outlook import Outlook, add_outlook, matters_at_target, sort_by_target
from advisor.advice.ranking.repairs import allow_for_repairs
from advisor.analysis.disturbance import undisturbed_seconds
from advisor.model import policy
from advisor.model.recommendations import Dismissed, Recommendation, Total

if TYPE_CHECKING:
    from advisor.advice.ranking.judgement import Judge, Judgement
    from advisor.advice.rules import RuleBook, RuleMatches
    from advisor.model.gap_parts import GapAccount, GapPart
    from advisor.model.records import Gap, Grade, Profile


class Ranking(NamedTuple):
    """The ranked recommendations, their combined saving, and the steps to revisit afterwards.

    ``drafts`` are what each recommendation was made of, ``dismissed`` what would not help, and what was not
    simulated.
    """

    recommendations: tuple[Recommendation, ...]
    total: Total
    steps_to_revisit: tuple[int, ...]
    drafts: tuple[Draft, ...] = ()
    dismissed: tuple[Dismissed, ...] = ()


def rank_matches(
    matches: RuleMatches,
    profile: Profile,
    gaps: Sequence[Gap],
    *,
    order: Literal["seconds", "steps"] = "seconds",
    grade: Grade | None = None,
    noise_s: float = 0.0,
    gain: Callable[[Recommendation], ExpectedGain | None] = lambda _: None,
    outlook: Outlook | None = None,
    judge: Judge = lambda _: None,
    accounts: Sequence[GapAccount] = (),
) -> Ranking:
    """Return one recommendation for each cause, the best first (or in the order of the steps).

    The best action of a cause leads, the others are its alternatives. ``gain`` says what a change is expected to win,
    ``noise_s`` what runs of one build differ by. ``outlook`` is what is predicted at the scale the program is
    meant for: an action against a gap that will matter there stays although it wins little today, and says so; at a
    scale that the user states the seconds there decide the order.
    Where ``judge`` simulates changes, all remedies that could apply are tried, and what they win decides. ``accounts``
    hold what findings explain of the gaps: actions against that are about these seconds, and no others are.
    """
    words = outlook or Outlook()
    budget = build_gap_budget(matches.sheet, gaps, grade, noise_s)
    budget = replace(budget, explained=sum_explained(matches, accounts, budget))
    simulated = judge_drafts(matches, profile, budget, judge)
    if simulated is not None:
        others = tuple(explain_drafts(simulated.others, accounts, profile, budget))
        simulated = replace(simulated, others=others)
        return _by_simulation(simulated, matches, profile, gaps, budget, gain, words, order)
    drafts = explain_drafts(build_drafts(matches, profile, budget), accounts, profile, budget)
    found = [_add_expected_gain(draft, gain) for draft in drafts]
    worth = (draft for draft in found if _is_worth_it(draft, profile) or matters_at_target(draft, words))
    by_score = sorted(worth, key=lambda draft: draft.sort_key)
    ordered = put_builds_first(put_general_last(put_known_first(by_score)))
    found = _sort_near_equals(_select_one_per_cause(ordered, profile, budget))
    chosen = sort_by_target([add_outlook(draft, words, budget) for draft in found], words, noise_s)
    if order == "steps":
        kept = [d for d in chosen if matters_at_target(d, words) or _has_gap(d, matches.book, profile, budget)]
        chosen = sorted(kept, key=lambda draft: draft.recommendation.step)
    chosen = [allow_for_repairs(draft, profile, budget) for draft in chosen]
    recommendations = _number_recommendations(chosen)
    revisit = _steps_to_revisit(matches.book, chosen)
    return Ranking(recommendations, _compute_total(chosen, gaps, profile, budget), revisit, tuple(chosen))


def _by_simulation(
    found: Judgement,
    matches: RuleMatches,
    profile: Profile,
    gaps: Sequence[Gap],
    budget: GapBudget,
    gain: Callable[[Recommendation], ExpectedGain | None],
    words: Outlook,
    order: Literal["seconds", "steps"],
) -> Ranking:
    """Return the ranking of what a simulation chose, and of what it can't say anything about."""
    items = tuple(_correct_by_history(draft, gain) for draft in found.items)
    others = tuple(_add_expected_gain(draft, gain) for draft in found.others)
    judged = order_judgement(replace(found, items=items, others=others), profile, words)
    ordered = put_builds_first(put_general_last(judged))
    selected = _select_one_per_cause(ordered, profile, budget, tried=True)
    chosen = sort_by_target([add_outlook(draft, words, budget) for draft in selected], words, budget.noise_s)
    if order == "steps":
        chosen = sorted(chosen, key=lambda draft: draft.recommendation.step)
    chosen = [allow_for_repairs(draft, profile, budget) for draft in chosen]
    recommendations = _number_recommendations(chosen)
    revisit = _steps_to_revisit(matches.book, chosen)
    total = _compute_total(chosen, gaps, profile, budget)
    return Ranking(recommendations, total, revisit, tuple(chosen), found.dismissed)


def _correct_by_history(draft: Draft, gain: Callable[[Recommendation], ExpectedGain | None]) -> Draft:
    """Return the draft corrected by what its action has won in this program before, where that is known."""
    made = draft.recommendation
    found = gain(made)
    if found is None or found.basis != "history":
        return draft
    better = replace(made, expected_s=found.expected_s, interval_s=(found.low_s, found.high_s), basis=found.basis)
    return replace(draft, recommendation=better, further_s=found.expected_s, said_s=made.expected_s)


def _add_expected_gain(draft: Draft, gain: Callable[[Recommendation], ExpectedGain | None]) -> Draft:
    """Return the draft with what its change is expected to win, which is never more than the ceiling.

    A replay of hosts and devices follows a change to gaps that its action is not about: that raises the ceiling.
    """
    made = draft.recommendation
    found = gain(made)
    if found is None or found.basis != "history":
        found = explained_gain(draft.part) or found or _calibrated_gain(draft)
    if found is None:
        return draft
    replayed = found.basis == "simulation" and "devices" in draft.match.action.change
    most = max(made.ceiling_s, found.high_s) if replayed else made.ceiling_s
    expected_s, interval_s = cap_gain(found.expected_s, found.low_s, found.high_s, most)
    better = replace(made, expected_s=expected_s, interval_s=interval_s, basis=found.basis, ceiling_s=most)
    return replace(draft, recommendation=better)


def _calibrated_gain(draft: Draft) -> ExpectedGain | None:
    """Return what the change won where it was measured, of the seconds that it is about here."""
    calibration, most = draft.match.action.gain, draft.recommendation.ceiling_s
    if calibration is None or not calibration.wins:
        return None
    low, usual, high = calibration.wins
    return ExpectedGain(usual * most, low * most, high * most, "calibration")


def _sort_near_equals(ordered: Sequence[Draft]) -> list[Draft]:
    """Return the drafts, those of one action that are nearly as good in the order of their places.

    So noise does not choose between phases that are alike.
    """
    found = list(ordered)
    for action in {draft.recommendation.action for draft in ordered}:
        left = [at for at, draft in enumerate(ordered) if draft.recommendation.action == action]
        while left:
            best = ordered[left[0]].score
            low, high = policy.NEAR_EQUAL * best, best / policy.NEAR_EQUAL
            near = [at for at in left if at == left[0] or low <= ordered[at].score <= high]
            steady = sorted((ordered[at] for at in near), key=lambda draft: draft.position)
            for at, draft in zip(near, steady, strict=True):
                found[at] = draft
            left = [at for at in left if at not in near]
    return found


def _select_one_per_cause(
    ordered: Iterable[Draft], profile: Profile, budget: GapBudget, *, tried: bool = False
) -> list[Draft]:
    """Return the drafts whose seconds no better one is about, with the others as alternatives of those.

    Where changes were ``tried`` in a simulation, one that could not be is an alternative of any about some of its
    seconds.
    """
    chosen: list[Draft] = []
    owner: dict[Claim, int] = {}
    of_part: dict[GapPart, int] = {}
    for draft in ordered:
        if draft.part is not None:  # its seconds are its own
            if draft.part in of_part:
                number = of_part[draft.part]
                chosen[number] = _add_alternative(chosen[number], draft.match.action.id)
            else:
                of_part[draft.part] = len(chosen)
                chosen.append(draft)
            continue
        if draft.further_s is not None:  # a simulation says that it wins behind the better ones
            owner |= dict.fromkeys((claim for claim in draft.claims if claim not in owner), len(chosen))
            chosen.append(draft)
            continue
        free = tuple(claim for claim in draft.claims if claim not in owner)
        taken: dict[int, float] = {}
        for claim in draft.claims:
            if claim in owner:
                taken[owner[claim]] = taken.get(owner[claim], 0.0) + budget.part_seconds(claim[1], claim[0])
        left = sum(budget.part_seconds(name, site) for site, name in free)
        gone = sum(taken.values())
        few = left < gone and not math.isclose(left, gone)  # half of the seconds, however they were added up
        little = few or not _is_enough(compute_ceiling(budget, free), profile)
        if taken and (tried or little or _is_place_taken(draft, owner, budget)):
            most = max(taken, key=lambda number: (taken[number], -number))
            chosen[most] = _add_alternative(chosen[most], draft.match.action.id)
            continue
        owner |= dict.fromkeys(free, len(chosen))
        chosen.append(draft if not taken else restrict_draft(draft, free, budget))
    return chosen


def _is_place_taken(draft: Draft, owner: Collection[Claim], budget: GapBudget) -> bool:
    """Return whether a better draft is about all that this one is about at the place that it would show."""
    place, sites = draft.match.site.place, budget.sheet.sites
    here = [claim for claim in draft.claims if claim[0] >= 0 and sites[claim[0]].place == place]
    return bool(here) and all(claim in owner for claim in here)


def _add_alternative(draft: Draft, action: str) -> Draft:
    made = draft.recommendation
    if action == made.action or action in made.alternatives:
        return draft
    return replace(draft, recommendation=replace(made, alternatives=(*made.alternatives, action)))


def _is_enough(seconds: float, profile: Profile) -> bool:
    return is_significant(seconds, undisturbed_seconds(profile), simulated=profile.is_simulated)


def _is_worth_it(draft: Draft, profile: Profile) -> bool:
    made = draft.recommendation
    if profile.devices is not None and made.basis == "simulation":
        return _is_enough(made.expected_s or 0.0, profile)
    if made.basis == "simulation" and made.interval_s is not None and not _is_enough(made.interval_s[1], profile):
        return False  # nobody changes a program for that
    if made.basis == "simulation" and made.expected_s == 0.0:
        return False
    return _is_enough(draft.recommendation.ceiling_s, profile)


def _has_gap(draft: Draft, rules: RuleBook, profile: Profile, budget: GapBudget) -> bool:
    """Return whether a gap of the draft's step is significant; else the step is skipped (source, section 3.2.2)."""
    step = draft.recommendation.step
    listed = next((entry.gaps for entry in rules.steps if entry.id == step), ())
    letters = (*listed, *draft.recommendation.gaps)
    return any(_is_enough(budget.gap_seconds(budget.find_gap_with(letter)), profile) for letter in letters)


def _number_recommendations(chosen: Iterable[Draft]) -> tuple[Recommendation, ...]:
    """Return the recommendations with their ranks, and with different fingerprints where phases share a name."""
    made = [draft.recommendation for draft in chosen]
    plain = {one.fingerprint: one for one in sorted(made, key=lambda one: (one.phase or "", one.action), reverse=True)}
    return tuple(
        replace(
            one,
            rank=number,
            fingerprint=one.fingerprint if plain[one.fingerprint] is one else _alternate_fingerprint(one),
        )
        for number, one in enumerate(made, 1)
    )


def _alternate_fingerprint(one: Recommendation) -> str:
    return compute_digest(one.fingerprint, one.action, one.phase or "")


def _compute_total(chosen: Sequence[Draft], gaps: Sequence[Gap], profile: Profile, budget: GapBudget) -> Total:
    """Return what all of them win together: each second of a gap counts once, and nothing below the lowest bound."""
    claims = [claim for draft in chosen for claim in draft.claims]
    made = [draft.recommendation for draft in chosen]
    apart = sum((one.ceiling_s for one in made), 0.0)
    explained = sum((draft.recommendation.ceiling_s for draft in chosen if draft.part is not None), 0.0)
    others = compute_ceiling(budget, [claim for draft in chosen if draft.part is None for claim in draft.claims])
    largest = max((one.ceiling_s for one in made), default=0.0)  # that of code is what the slowest processor takes
    most = min(apart, max(others + explained, largest), _seconds_above_lowest(claims, gaps, profile))
    expected = [_apart_s(draft) for draft in chosen if draft.recommendation.expected_s is not None]
    if not expected:
        return Total(most)
    most = max(most, sum(draft.further_s or 0.0 for draft in chosen))
    lows, highs = zip(*(one.interval_s for one in made if one.interval_s is not None), strict=True)
    return Total(most, min(sum(expected), most), (min(max(lows), most), min(sum(highs), most)))


def _apart_s(draft: Draft) -> float:
    """Return what a draft is expected to win behind all better ones, as far as that is known."""
    return draft.further_s if draft.further_s is not None else draft.recommendation.expected_s or 0.0


def _seconds_above_lowest(claims: Iterable[Claim], gaps: Sequence[Gap], profile: Profile) -> float:
    """Return the run time above the lower bound of the lowest gap that is claimed."""
    names = {name for _, name in claims}
    lowest = next((number for number, gap in enumerate(gaps) if gap.name in names), None)
    if lowest is None or not names <= {gap.name for gap in gaps}:
        return profile.actual_s
    return max(sum(gap.seconds for gap in gaps[lowest:]), 0.0)


def _steps_to_revisit(rules: RuleBook, chosen: Iterable[Draft]) -> tuple[int, ...]:
    """Return the steps that arrows lead to from those of the recommendations (Hung and Davidson, figure 6)."""
    touched = {draft.recommendation.step for draft in chosen}
    reached = {arrow.to for arrow in rules.arrows if arrow.from_ in touched}
    reached |= {arrow.from_ for arrow in rules.arrows if arrow.kind == "conflict" and arrow.to in touched}
    return tuple(sorted(reached))
