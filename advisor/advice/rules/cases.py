"""The examples of rules, tested on small runs with known answers (``gapwatch rules test``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from advisor.advice.facts import FactSheet, collect_facts
from advisor.advice.rules.case_profiles import build_profile
from advisor.advice.rules.case_records import Case
from advisor.advice.rules.comparisons import parse_value
from advisor.advice.rules.matching import RuleMatch, match_action
from advisor.analysis import bounds, gaps
from advisor.analysis.loads import summarize_loads
from advisor.model.records import GAP_NAMES
from advisor.support import bundled, documents

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact, Value
    from advisor.advice.rules.records import Action, Example, Expectation, RuleBook

CASES = "cases.yaml"


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One example of an action: the expected and the actual result, and the deciding sites."""

    action: Action
    example: Example
    outcome: Expectation
    matches: tuple[RuleMatch, ...]

    @property
    def has_passed(self) -> bool:
        """Whether the action does what the example says."""
        return self.outcome == self.example.expect


@cache
def load_cases() -> dict[str, Case]:
    """Return the bundled cases by name."""
    file = next(file for file in bundled.list_documents("rules") if file.name == CASES)
    return {case.id: case for case in documents.load_list(file, Case)}


@cache
def build_case_sheet(name: str) -> FactSheet:
    """Return the facts of a bundled case."""
    case = load_cases()[name]
    profile = build_profile(case)
    loads = summarize_loads(profile)
    found = bounds.compute_bounds(profile, None, loads)
    sheet = collect_facts(profile, found, gaps.attribute_gaps(profile, found, loads), None, loads)
    vocabulary = sheet.run.vocabulary
    words = {str(word): text for word, text in case.facts.items()}
    facts = {word: parse_value(text, vocabulary[word].unit) for word, text in words.items() if word in vocabulary}
    shares = {word: float(parse_value(text, "share")) for word, text in words.items() if word in GAP_NAMES}
    return _override_values(sheet, facts, shares)


def run_examples(book: RuleBook, facts: Iterable[Fact] = (), only: Iterable[str] | None = None) -> list[ExampleResult]:
    """Return the result of every example of the book's actions (or of ``only`` these).

    ``facts`` are the words that plugins add; they are unknown in the cases unless an example gives them a value.
    """
    extra = {fact.name: fact for fact in facts}
    wanted = None if only is None else set(only)
    actions = [action for action in book.actions if wanted is None or action.id in wanted]
    return [try_example(action, example, extra) for action in actions for example in action.examples]


def try_example(action: Action, example: Example, extra: Mapping[str, Fact] | None = None) -> ExampleResult:
    """Return what an action says about a case: it fires, or needs something, at any site, or else is silent."""
    sheet = build_case_sheet(example.case)
    vocabulary = {**(extra or {}), **sheet.run.vocabulary}
    if len(vocabulary) > len(sheet.run.vocabulary):
        # the sheet with more words, all of them unknown
        sites = tuple(site.with_vocabulary(vocabulary) for site in sheet.sites)
        sheet = replace(sheet, run=sheet.run.with_vocabulary(vocabulary), sites=sites)
    sheet = _override_values(sheet, example.override_facts(vocabulary), example.gap_shares)
    found = tuple(match_action(action, sheet))
    truths = {match.outcome.truth for match in found}
    answer: Expectation = "fires" if True in truths else "needs" if None in truths else "no_match"
    return ExampleResult(action, example, answer, found)


def _override_values(sheet: FactSheet, values: Mapping[str, Value | None], shares: Mapping[str, float]) -> FactSheet:
    """Return the sheet with other values of facts and gaps, at every site."""
    if not values and not shares:
        return sheet
    sites = tuple(site.with_values(values, shares) for site in sheet.sites)
    return replace(sheet, run=sheet.run.with_values(values, shares), sites=sites)
