"""Lint of valid rules: unsatisfiable conditions, duplicates, missing examples.

``check_rule_file`` is what ``gapwatch rules check`` does: the mistakes of a file, and where there are none, what lint
has to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final

from advisor.advice.facts.vocabulary import facts_by_name
from advisor.advice.rules.cases import build_case_sheet, load_cases, run_examples
from advisor.advice.rules.conditions import AllOf, AnyOf, FactIs, GapShare, Leaf, Not, When
from advisor.advice.rules.intervals import Atom, find_contradiction, is_always_true, make_atom
from advisor.advice.rules.matching import match_action
from advisor.advice.rules.rule_loader import list_action_files, load_bundled_book, load_rules, remove_file
from advisor.model.errors import DocumentError, Problem

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact
    from advisor.advice.rules.records import Action, RuleBook

#: Alternatives of one condition that are looked at; more are not written by hand.
MOST_ALTERNATIVES: Final = 1000


def check_rule_file(path: Path, facts: Iterable[Fact] = ()) -> list[Problem]:
    """Return every mistake in a file of rules, in the order of their places; an empty list if it is right.

    The file is read on top of the bundled rules. ``facts`` are the words that plugins add.
    """
    extra = tuple(facts)
    base = load_bundled_book()
    if path.resolve() in {Path(str(file)).resolve() for file in list_action_files()}:
        base = remove_file(base, path)
    try:
        book = load_rules([path], extra, base, cases=load_cases())
    except DocumentError as error:
        return list(error.problems)
    own = {action.id for action in book.actions if action.mark.file == str(path)}
    return [problem for problem in lint_book(book, extra, own) if problem.path == str(path)]


def lint_book(book: RuleBook, facts: Iterable[Fact] = (), only: Iterable[str] | None = None) -> list[Problem]:
    """Return what is doubtful about the actions of a book (or about ``only`` these), in the order of their places."""
    vocabulary = facts_by_name(facts)
    wanted = {action.id for action in book.actions} if only is None else set(only)
    found: list[Problem] = []
    for action in book.actions:
        if action.id in wanted:
            found += _check_conditions(action, vocabulary)
            found += _check_relations(action, book)
            found += _check_examples(action)
    found += _find_twins(book.actions, wanted)
    found += _find_failing_examples(book, wanted, vocabulary)
    return sorted(found)


def iterate_alternatives(when: When, *, holds: bool = True) -> Iterator[tuple[tuple[Leaf, bool], ...]]:
    """Yield the ways in which a condition comes true (or false): comparisons, and whether each must hold."""
    if isinstance(when, Not):
        yield from iterate_alternatives(when.not_, holds=not holds)
    elif isinstance(when, AllOf | AnyOf):
        parts = when.all if isinstance(when, AllOf) else when.any
        if isinstance(when, AllOf) == holds:
            for chosen in product(*(tuple(iterate_alternatives(part, holds=holds)) for part in parts)):
                yield tuple(pair for part in chosen for pair in part)
        else:
            for part in parts:
                yield from iterate_alternatives(part, holds=holds)
    else:
        yield ((when, holds),)


def _check_conditions(action: Action, vocabulary: Mapping[str, Fact]) -> Iterator[Problem]:
    """Yield comparisons that always hold and alternatives that contradict themselves."""
    for leaf in action.comparisons:
        if is_always_true(make_atom(leaf, vocabulary)):
            yield leaf.mark.make_problem(f"{action.id}: '{_format_leaf(leaf)}' is always true")
    ways = [way for way, _ in zip(iterate_alternatives(action.when), range(MOST_ALTERNATIVES), strict=False)]
    dead = [find_contradiction(_make_atoms(way, vocabulary)) for way in ways]
    if all(dead):
        yield action.when.mark.make_problem(f"{action.id}: can never fire, because {dead[0]}")
        return
    for part in _iterate_parts(action.when):
        inside = [find_contradiction(_make_atoms(way, vocabulary)) for way in iterate_alternatives(part)]
        if isinstance(part, AllOf) and all(inside):
            yield part.mark.make_problem(f"{action.id}: this alternative can never be true, because {inside[0]}")


def _iterate_parts(when: When) -> Iterator[When]:
    """Yield the parts of alternatives, at every depth."""
    if isinstance(when, AllOf | AnyOf):
        for part in when.all if isinstance(when, AllOf) else when.any:
            if isinstance(when, AnyOf):
                yield part
            yield from _iterate_parts(part)
    elif isinstance(when, Not):
        yield from _iterate_parts(when.not_)


def _make_atoms(way: Iterable[tuple[Leaf, bool]], vocabulary: Mapping[str, Fact]) -> list[Atom]:
    return [make_atom(leaf, vocabulary, holds=holds) for leaf, holds in way]


def _format_leaf(leaf: Leaf) -> str:
    if isinstance(leaf, FactIs):
        return f"{leaf.fact} {leaf.is_}"
    return f"gap {leaf.gap} {leaf.share if isinstance(leaf, GapShare) else leaf.seconds}"


def _check_relations(action: Action, book: RuleBook) -> Iterator[Problem]:
    """Yield what an action says about steps, issues and other actions that does not fit together."""
    known = {other.id for other in (*book.actions, *book.off)}
    for other in action.conflicts:
        if other == action.id or other not in known:
            what = "itself" if other == action.id else f"{other}, which does not exist"
            yield action.mark.make_problem(f"{action.id}: conflicts with {what}")
    for issue in sorted(set(action.helps) & set(action.hurts)):
        yield action.mark.make_problem(f"{action.id}: helps and hurts {issue}")
    of_issue = next((issue.step for issue in book.issues if issue.id == action.issue), None)
    gaps = next((step.gaps for step in book.steps if step.id == action.step), ())
    if of_issue != action.step and not set(action.targets) & set(gaps):
        yield action.mark.make_problem(
            f"{action.id}: stands in step {action.step}, but {action.issue} belongs to step {of_issue} "
            f"and none of its gaps to step {action.step}"
        )
    if not action.how:
        yield action.mark.make_problem(f"{action.id}: does not say how it is done")


def _check_examples(action: Action) -> Iterator[Problem]:
    """Yield missing examples, and actions that no case makes speak."""
    expected = {example.expect for example in action.examples}
    if not expected & {"fires", "needs"}:
        yield action.mark.make_problem(f"{action.id}: no example in which it fires or needs something")
    if "no_match" not in expected and not {"fires", "needs"} <= expected:
        yield action.mark.make_problem(f"{action.id}: no example in which it stays silent")
    if action.examples or not all(
        leaf.fact in facts_by_name() for leaf in action.comparisons if isinstance(leaf, FactIs)
    ):
        return
    truths = {match.outcome.truth for name in load_cases() for match in match_action(action, build_case_sheet(name))}
    if truths <= {False}:
        yield action.mark.make_problem(f"{action.id}: never fires, on none of the {len(load_cases())} cases")


def _find_twins(actions: Iterable[Action], wanted: set[str]) -> Iterator[Problem]:
    """Yield actions that fire exactly when an earlier one does, for the same gaps."""
    seen: dict[tuple[object, ...], Action] = {}
    for action in actions:
        key = (
            _condition_shape(action.when),
            tuple(sorted(action.targets)),
            tuple(sorted(action.applies_to)),
            action.issue,
        )
        if key in seen and action.id in wanted:
            twin = seen[key]
            yield action.mark.make_problem(f"{action.id}: has the conditions and gaps of {twin.id} ({twin.place})")
        seen.setdefault(key, action)


def _condition_shape(when: When) -> object:
    """Return a condition without its places; the order of the parts does not matter."""
    if isinstance(when, AllOf | AnyOf):
        parts = when.all if isinstance(when, AllOf) else when.any
        return type(when).__name__, frozenset(_condition_shape(part) for part in parts)
    if isinstance(when, Not):
        return "Not", _condition_shape(when.not_)
    text = when.is_ if isinstance(when, FactIs) else when.share if isinstance(when, GapShare) else when.seconds
    name = when.fact if isinstance(when, FactIs) else when.gap
    return type(when).__name__, str(name), " ".join(text.split())


def _find_failing_examples(book: RuleBook, wanted: set[str], vocabulary: Mapping[str, Fact]) -> Iterator[Problem]:
    for result in run_examples(book, vocabulary.values(), wanted):
        if not result.has_passed:
            said = {"fires": "it fires", "no_match": "it does not match", "needs": "it needs a measurement"}
            yield result.example.mark.make_problem(
                f"{result.action.id}: expected {result.example.expect} on {result.example.case}, "
                f"but {said[result.outcome]}"
            )
