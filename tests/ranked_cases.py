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


def first_item_of(case: str) -> Recommendation:
    return rank_case(case).recommendations[0]


def two_skewed_phases() -> Profile:
    """Two loops in which the same rank has more work than the others."""
    (loop,) = load_cases()["skewed-load"].phases
    return build_profile(replace(load_cases()["skewed-load"], phases=(loop, replace(loop, name="update"))))


def keep_rules(*numbers: str) -> rules.RuleBook:
    """The bundled book with these actions alone."""
    return replace(BOOK, actions=tuple(action for action in BOOK.actions if action.id in numbers), off=BOOK.actions)
