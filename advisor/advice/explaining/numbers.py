"""How every number of the advice on a run came about: formula, inputs, where they come from, and how sure they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from advisor.advice.explaining import of_actions, of_bounds, of_gaps
from advisor.advice.explaining.expressions import Terms
from advisor.advice.explaining.records import Explanation, Number
from advisor.advice.ranking.ceilings import ledger
from advisor.model.errors import UsageError
from advisor.model.records import GAP_NAMES
from advisor.support.documents.scalars import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.pipeline import Study


def explain(study: Study, what: str | None = None) -> Explanation:
    """Return how the numbers of a run came about: all of them, or those of one action or one gap.

    Raises ``UsageError`` where ``what`` is neither.
    """
    profile = study.advice.profile
    numbers = tuple(_everything(study) if what is None else _about(study, what))
    machine = study.machine.name if study.machine else None
    return Explanation(profile.program, profile.run, profile.reader, tuple(map(str, study.files)), machine, numbers)


def _everything(study: Study) -> Iterator[Number]:
    advice, terms = study.advice, Terms(study.advice.profile, study.loads)
    yield of_gaps.grade(advice.grade)
    yield from _bounds(study, {bound.name for bound in advice.bounds})
    yield from (of_gaps.gap(found, advice, terms) for found in advice.gaps)
    for found in advice.efficiencies:
        yield of_gaps.efficiency(found, advice.profile, study.loads, advice, terms)
    for number in range(len(advice.recommendations)):
        yield from _recommended(study, number)


def _bounds(study: Study, names: set[str]) -> Iterator[Number]:
    for bound in study.advice.bounds:
        if bound.name in names:
            yield of_bounds.explained(bound, study.advice.profile, study.loads, study.machine)


def _recommended(study: Study, number: int) -> Iterator[Number]:
    made, draft = study.advice.recommendations[number], study.ranking.drafts[number]
    if study.matches is not None:
        noise_s = study.earlier.noise_s()
        book = ledger(study.matches.sheet, study.advice.gaps, study.advice.grade, noise_s)
        terms = Terms(study.advice.profile, study.loads)
        yield from of_actions.explained(draft, made, book, study.won, terms)


def _about(study: Study, what: str) -> Iterator[Number]:
    advice = study.advice
    if what in GAP_NAMES or any(what in (found.name, *found.members) for found in advice.gaps):
        found = next((one for one in advice.gaps if what in (one.name, *one.members)), None)
        if found is None:
            raise UsageError(f"the gap {what} is not known in this run: the bounds around it are unavailable")
        yield of_gaps.gap(found, advice, Terms(advice.profile, study.loads))
        yield from _bounds(study, {found.lower, found.upper})
        return
    yield from _action(study, what)


def _action(study: Study, what: str) -> Iterator[Number]:
    recommended = [number for number, one in enumerate(study.advice.recommendations) if one.action == what]
    action = study.matches.book.action(what) if study.matches else None
    if action is None:
        names = [one.id for one in study.matches.book.actions] if study.matches else []
        hint = suggestion(what, [*names, *GAP_NAMES]) if re.fullmatch(r"\S{1,40}", what) else ""
        raise UsageError(f"{what!r} is neither an action nor a gap{hint} (gapwatch rules list shows all actions)")
    for number in recommended:
        yield from _recommended(study, number)
    if not recommended and study.matches is not None:
        yield from of_actions.silent(action, study.matches.sheet, Terms(study.advice.profile, study.loads))
