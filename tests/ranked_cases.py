"""Rankings of profiles, and of the cases of the rules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from advisor.advice import facts, ranking, rules
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.cases import build_case_sheet, load_cases
from advisor.analysis import bounds, gaps

if TYPE_CHECKING:
    from advisor.advice.ranking import Ranking
    from advisor.advice.ranking.drafts import Draft
    from advisor.model.recommendations import Recommendation
    from advisor.model.records import Gap, Profile


BOOK = rules.load_default()


def find_gaps(profile: Profile) -> tuple[Gap, ...]:
    return gaps.attribute_gaps(profile, bounds.compute_bounds(profile))


def match_profile(profile: Profile, book: rules.RuleBook = BOOK) -> rules.RuleMatches:
    found = bounds.compute_bounds(profile)
    return rules.match_rules(book, facts.collect_facts(profile, found, gaps.attribute_gaps(profile, found)))


def rank_profile(profile: Profile, book: rules.RuleBook = BOOK, **more: object) -> Ranking:
    return ranking.rank_matches(match_profile(profile, book), profile, find_gaps(profile), **more)


@cache
def rank_case(case: str) -> Ranking:
    """The ranking of a case, with the facts that it is given."""
    profile = build_profile(load_cases()[case])
    return ranking.rank_matches(rules.match_rules(BOOK, build_case_sheet(case)), profile, find_gaps(profile))


def draft() -> Draft:
    """The first item of a run, with a score of 10 s * 0.5 * 0.8 / 2 = 2 s."""
    made = rank_profile(build_profile(load_cases()["skewed-load"])).drafts[0]
    match = replace(made.match, action=replace(made.match.action, typical_fraction=0.5))
    item = replace(made.recommendation, ceiling_s=10.0, expected_s=None, basis=None, confidence=0.8, effort=2)
    return replace(made, match=match, recommendation=item)


def first_item_of(case: str) -> Recommendation:
    return rank_case(case).recommendations[0]


def two_skewed_phases() -> Profile:
    """Two loops in which the same rank has more work than the others."""
    (loop,) = load_cases()["skewed-load"].phases
    return build_profile(replace(load_cases()["skewed-load"], phases=(loop, replace(loop, name="update"))))


def keep_rules(*numbers: str) -> rules.RuleBook:
    """The bundled book with these actions alone."""
    return replace(BOOK, actions=tuple(action for action in BOOK.actions if action.id in numbers), off=BOOK.actions)
