"""The examples of rules, tried on small runs whose answer is known: what ``gapwatch rules test`` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from advisor.advice.facts import collect
from advisor.advice.rules.case_profiles import profile_of
from advisor.advice.rules.case_records import Case
from advisor.advice.rules.comparisons import given_value
from advisor.advice.rules.matching import matches_of
from advisor.analysis import bounds, gaps
from advisor.analysis.loads import summarize
from advisor.model.records import GAP_NAMES
from advisor.support import bundled, documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from advisor.advice.facts import FactSheet
    from advisor.advice.facts.vocabulary import Fact, Value
    from advisor.advice.rules.matching import Match
    from advisor.advice.rules.records import Action, Example, Expectation, RuleBook

CASES = "cases.yaml"


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One example of an action: what was expected, what came out, and the sites that decide it."""

    action: Action
    example: Example
    found: Expectation
    matches: tuple[Match, ...]

    @property
    def passed(self) -> bool:
        """Whether the action does what the example says."""
        return self.found == self.example.expect


@cache
def cases() -> dict[str, Case]:
    """Return the bundled cases by name."""
    file = next(file for file in bundled.documents("rules") if file.name == CASES)
    return {case.id: case for case in documents.load_list(file, Case)}


@cache
def sheet_of(name: str) -> FactSheet:
    """Return the facts of a bundled case."""
    case = cases()[name]
    profile = profile_of(case)
    loads = summarize(profile)
    found = bounds.compute(profile, None, loads)
    sheet = collect(profile, found, gaps.attribute(profile, found, loads), None, loads)
    vocabulary = sheet.run.vocabulary
    words = {str(word): text for word, text in case.facts.items()}
    facts = {word: given_value(text, vocabulary[word].unit) for word, text in words.items() if word in vocabulary}
    shares = {word: float(given_value(text, "share")) for word, text in words.items() if word in GAP_NAMES}
    return _given(sheet, facts, shares)


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
    sheet = sheet_of(example.given)
    vocabulary = {**(extra or {}), **sheet.run.vocabulary}
    if len(vocabulary) > len(sheet.run.vocabulary):
        sheet = _with_words(sheet, vocabulary)
    sheet = _given(sheet, example.facts(vocabulary), example.shares)
    found = tuple(matches_of(action, sheet))
    truths = {match.outcome.truth for match in found}
    answer: Expectation = "fires" if True in truths else "needs" if None in truths else "silent"
    return ExampleResult(action, example, answer, found)


def _given(sheet: FactSheet, values: Mapping[str, Value | None], shares: Mapping[str, float]) -> FactSheet:
    """Return the sheet with other values of facts and gaps, at every site."""
    if not values and not shares:
        return sheet
    sites = tuple(site.given(values, shares) for site in sheet.sites)
    return replace(sheet, run=sheet.run.given(values, shares), sites=sites)


def _with_words(sheet: FactSheet, vocabulary: Mapping[str, Fact]) -> FactSheet:
    """Return the sheet with more words, all of them unknown."""
    sites = tuple(site.knowing(vocabulary) for site in sheet.sites)
    return replace(sheet, run=sheet.run.knowing(vocabulary), sites=sites)
