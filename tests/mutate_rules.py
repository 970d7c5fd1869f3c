"""Are the examples of the rules sharp? Each comparison is changed in turn; some example must then come out differently.

A threshold is raised and lowered by a fifth, and every comparison is negated. ``python tests/mutate_rules.py [FILE…]``
lists the changes that no example notices, for the bundled rules or for those of the files.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.advice import rules
from advisor.advice.rules.cases import try_example
from advisor.advice.rules.comparisons import OPERATORS, parse_comparison
from advisor.advice.rules.conditions import AllOf, AnyOf, FactIs, GapSeconds, GapShare, Leaf, Not, When

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from advisor.advice.rules.records import Action

FACTORS = {"raised": 1.2, "lowered": 0.8}
#: Facts that come in whole numbers.
WHOLE = (
    "run.ranks",
    "run.threads",
    "run.processors",
    "run.cores",
    "run.iterations",
    "phase.iterations",
    "phase.phases",
)


@dataclass(frozen=True)
class Mutant:
    """An action with one comparison changed: ``change`` is raised, lowered or negated."""

    action: Action
    leaf: Leaf
    change: str

    @property
    def survives(self) -> bool:
        """Whether no example notices."""
        return all(try_example(self.action, example).has_passed for example in self.action.examples)

    @property
    def words(self) -> str:
        """Where the comparison stands, what it says, and how it was changed."""
        leaf = self.leaf
        place = f"{leaf.mark.file}:{leaf.mark.line}:{leaf.mark.column}"
        return f"{place}: {self.action.id}: {name_of(leaf)} {text_of(leaf)} {self.change}"


def mutants(actions: Sequence[Action]) -> Iterator[Mutant]:
    """Yield all changes of all comparisons."""
    for action in actions:
        for leaf in action.comparisons:
            for change in (*FACTORS, "negated"):
                other = negated(leaf) if change == "negated" else scaled(leaf, FACTORS[change])
                if other is not None and not same(leaf, other):
                    yield Mutant(replace(action, when=swapped(action.when, leaf, other)), leaf, change)


def swapped(when: When, old: Leaf, new: When) -> When:
    """Return the condition with one comparison, told by its place, exchanged for another condition."""
    if isinstance(when, AllOf):
        return replace(when, all=tuple(swapped(part, old, new) for part in when.all))
    if isinstance(when, AnyOf):
        return replace(when, any=tuple(swapped(part, old, new) for part in when.any))
    if isinstance(when, Not):
        return replace(when, not_=swapped(when.not_, old, new))
    return new if when is old else when


def negated(leaf: Leaf) -> When:
    return Not(leaf, leaf.mark)


def scaled(leaf: Leaf, factor: float) -> Leaf | None:
    """Return the comparison with its threshold multiplied; None where that is no number."""
    text = text_of(leaf)
    op = next((op for op in OPERATORS if text.startswith(op)), "")
    number, _, unit = text.removeprefix(op).strip().partition(" ")
    try:
        value = float(number) * factor
    except ValueError:
        return None
    written = f"{op} {value:.10g} {unit}".strip()
    if isinstance(leaf, FactIs):
        return replace(leaf, is_=written)
    return replace(leaf, share=written) if isinstance(leaf, GapShare) else replace(leaf, seconds=written)


def same(leaf: Leaf, other: When) -> bool:
    """Whether the change cannot be seen: ``> 1`` and ``> 1.2`` are the same of what comes in whole numbers."""
    if not isinstance(leaf, FactIs) or not isinstance(other, FactIs) or leaf.fact not in WHOLE:
        return False
    mine, theirs = (parse_comparison(one.is_, "count") for one in (leaf, other))
    return all(mine.is_met(float(number)) == theirs.is_met(float(number)) for number in range(1000))


def text_of(leaf: Leaf) -> str:
    return leaf.is_ if isinstance(leaf, FactIs) else leaf.seconds if isinstance(leaf, GapSeconds) else leaf.share


def name_of(leaf: Leaf) -> str:
    return str(leaf.fact if isinstance(leaf, FactIs) else leaf.gap)


def main(files: Sequence[str]) -> int:
    """Print the surviving mutants and a summary; 1 if a comparison survives all changes."""
    book = rules.load_default([Path(file) for file in files])
    actions = [action for action in book.actions if not files or action.mark.file in files]
    tried = list(mutants(actions))
    surviving = [mutant for mutant in tried if mutant.survives]
    places = {mutant.leaf.mark for mutant in tried}
    untested = places - {mutant.leaf.mark for mutant in tried if mutant not in surviving}
    for mutant in surviving:
        print(f"survives: {mutant.words}")
    print(f"{len(tried) - len(surviving)} of {len(tried)} changes noticed; {len(untested)} of {len(places)} untested")
    return 1 if untested else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
