"""The derivation of every number of the advice: formula, inputs, their sources and status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.advice.explaining import action_explanations, bound_explanations, gap_explanations
from advisor.advice.explaining.expressions import BoundExpressions
from advisor.advice.explaining.records import ExplainedNumber, Explanation
from advisor.advice.ranking.ceilings import build_gap_budget
from advisor.advice.ranking.explained_drafts import sum_explained
from advisor.model.errors import UsageError
from advisor.model.records import GAP_NAMES
from advisor.support.documents.scalars import suggest_word

if TYPE_CHECKING:
    from advisor.pipeline import Study


def explain_study(study: Study, what: str | None = None) -> Explanation:
    """Return how the numbers of a run came about: all of them, or those of one action, gap or bound.

    Raises ``UsageError`` where ``what`` is none of these.
    """
    profile = study.advice.profile
    numbers = tuple(_explain_everything(study) if what is None else _explain_subject(study, what))
    machine = study.machine.name if study.machine else None
    return Explanation(profile.program, profile.run, profile.reader, tuple(map(str, study.files)), machine, numbers)


def _explain_everything(study: Study) -> Iterator[ExplainedNumber]:
    advice, terms = study.advice, BoundExpressions(study.advice.profile, study.loads)
    yield gap_explanations.explain_grade(advice.grade)
    yield from _explain_bounds(study, {bound.name for bound in advice.bounds})
    yield from (gap_explanations.explain_gap(found, advice, terms) for found in advice.gaps)
    for found in advice.efficiencies:
        yield gap_explanations.explain_efficiency(found, advice.profile, study.loads, advice, terms)
    for number in range(len(advice.recommendations)):
        yield from _explain_recommendation(study, number)


def _explain_bounds(study: Study, names: set[str]) -> Iterator[ExplainedNumber]:
    for bound in study.advice.bounds:
        if bound.name in names:
            yield bound_explanations.explain_bound(bound, study.advice.profile, study.loads, study.machine)


def _explain_recommendation(study: Study, number: int) -> Iterator[ExplainedNumber]:
    made, draft = study.advice.recommendations[number], study.ranking.drafts[number]
    if study.matches is not None:
        noise_s = study.earlier.noise_s()
        book = build_gap_budget(study.matches.sheet, study.advice.gaps, study.advice.grade, noise_s)
        book = replace(book, explained=sum_explained(study.matches, study.advice.accounts, book))
        terms = BoundExpressions(study.advice.profile, study.loads)
        yield from action_explanations.explain_recommendation(draft, made, book, study.won, terms)


def _explain_subject(study: Study, what: str) -> Iterator[ExplainedNumber]:
    advice = study.advice
    if what in GAP_NAMES or any(what in (found.name, *found.members) for found in advice.gaps):
        found = next((one for one in advice.gaps if what in (one.name, *one.members)), None)
        if found is None:
            raise UsageError(f"the gap {what} is not known in this run: the bounds around it are unavailable")
        yield gap_explanations.explain_gap(found, advice, BoundExpressions(advice.profile, study.loads))
        yield from _explain_bounds(study, {found.lower, found.upper})
        return
    if any(what == bound.name for bound in advice.bounds):
        yield from _explain_bounds(study, {what})
        return
    yield from _explain_action(study, what)


def _explain_action(study: Study, what: str) -> Iterator[ExplainedNumber]:
    recommended = [number for number, one in enumerate(study.advice.recommendations) if one.action == what]
    action = study.matches.book.find_action(what) if study.matches else None
    if action is None:
        names = [one.id for one in study.matches.book.actions] if study.matches else []
        hint = (
            suggest_word(what, [*names, *GAP_NAMES, *(bound.name for bound in study.advice.bounds)])
            if re.fullmatch(r"\S{1,40}", what)
            else ""
        )
        raise UsageError(f"{what!r} is not an action, gap or bound{hint} (gapwatch rules list shows all actions)")
    for number in recommended:
        yield from _explain_recommendation(study, number)
    if not recommended and study.matches is not None:
        terms = BoundExpressions(study.advice.profile, study.loads)
        told: list[ExplainedNumber] = []  # phases may share a name, and what is not known is the same in all of them
        for reason in action_explanations.explain_missing_recommendation(action, study.matches.sheet, terms):
            if reason not in told:
                told.append(reason)
        yield from told
