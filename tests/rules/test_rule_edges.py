"""The examples hold every condition of the rules in place: move a threshold, turn a condition round, and one fails."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from advisor.advice.rules.cases import try_example
from advisor.advice.rules.conditions import AllOf, AnyOf, FactIs, GapSeconds, GapShare, Leaf, Not, When
from advisor.advice.rules.rule_loader import load_bundled_book

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.advice.rules.records import Action

NUMBER = re.compile(r"(>=|<=|>|<) (\d+(?:\.\d+)?)(.*)")
#: Mutants that no whole number can tell from the rule: more than 1 thread is more than 1.2 threads.
COUNTED = {"run.ranks", "run.threads", "run.processors", "phase.iterations", "phase.phases", "device.devices"}


@dataclass(frozen=True)
class Mutant:
    """An action with one comparison changed."""

    what: str
    leaf: Leaf
    action: Action

    @property
    def noticed(self) -> bool:
        return not all(try_example(self.action, example).has_passed for example in self.action.examples)


def threshold(leaf: Leaf) -> str:
    if isinstance(leaf, FactIs):
        return leaf.is_
    return leaf.share if isinstance(leaf, GapShare) else leaf.seconds


def moved(leaf: Leaf, factor: float) -> Leaf | None:
    """Return the comparison with its threshold times ``factor``; None if it compares with a word."""
    found = NUMBER.fullmatch(threshold(leaf))
    if found is None:
        return None
    text = f"{found[1]} {float(found[2]) * factor:.10g}{found[3]}"
    if isinstance(leaf, FactIs):
        return replace(leaf, is_=text)
    return replace(leaf, share=text) if isinstance(leaf, GapShare) else replace(leaf, seconds=text)


def changed(when: When, old: Leaf, new: When) -> When:
    """Return ``when`` with one comparison replaced."""
    if when is old:
        return new
    if isinstance(when, AllOf):
        return replace(when, all=tuple(changed(part, old, new) for part in when.all))
    if isinstance(when, AnyOf):
        return replace(when, any=tuple(changed(part, old, new) for part in when.any))
    if isinstance(when, Not):
        return replace(when, not_=changed(when.not_, old, new))
    return when


def mutants(action: Action) -> Iterator[Mutant]:
    for leaf in action.comparisons:
        name = leaf.fact if isinstance(leaf, FactIs) else leaf.gap
        where = f"{action.id} {name} {threshold(leaf)}"
        others: list[tuple[str, When | None]] = [("negated", Not(leaf, leaf.mark))]
        others += [(f"x {factor}", moved(leaf, factor)) for factor in (0.8, 1.2)]
        for what, other in others:
            if other is not None:
                yield Mutant(f"{where} {what}", leaf, replace(action, when=changed(action.when, leaf, other)))


def excused(mutant: Mutant) -> bool:
    return isinstance(mutant.leaf, FactIs) and mutant.leaf.fact in COUNTED and not mutant.what.endswith("negated")


@pytest.mark.parametrize("action", load_bundled_book().actions, ids=lambda action: action.id)
def test_examples_come_true(action: Action) -> None:
    results = [try_example(action, example) for example in action.examples]
    assert [(result.example.case, result.outcome) for result in results if not result.has_passed] == []


@pytest.mark.parametrize("action", load_bundled_book().actions, ids=lambda action: action.id)
def test_every_changed_condition_is_noticed(action: Action) -> None:
    assert [mutant.what for mutant in mutants(action) if not mutant.noticed and not excused(mutant)] == []


def test_thresholds_of_whole_numbers_are_held_from_one_side() -> None:
    counted = [mutant for action in load_bundled_book().actions for mutant in mutants(action) if excused(mutant)]
    by_leaf: dict[tuple[str, int, int], list[Mutant]] = {}
    for mutant in counted:
        mark = mutant.leaf.mark
        by_leaf.setdefault((mark.file, mark.line, mark.column), []).append(mutant)
    assert [group[0].what for group in by_leaf.values() if not any(mutant.noticed for mutant in group)] == []


def test_comparisons_of_all_kinds_occur() -> None:
    kinds = {type(leaf) for action in load_bundled_book().actions for leaf in action.comparisons}
    assert kinds <= {FactIs, GapShare, GapSeconds}
    assert {FactIs, GapShare} <= kinds
