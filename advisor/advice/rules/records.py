"""The records of ``rules/*.yaml``: steps, arrows, issues, and actions with their conditions, how-to and examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal

from advisor.advice.rules.comparisons import parse_value
from advisor.advice.rules.conditions import Leaf, When, iterate_comparisons
from advisor.advice.rules.names import (
    ActionName,
    AffectedName,
    CaseName,
    FactName,
    GapName,
    IssueName,
    StepNumber,
    current_names,
)
from advisor.model.recommendations import HowTo
from advisor.model.records import GAP_NAMES
from advisor.support.documents import Between, FieldErrors, Mark, former_key

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact, Value

Expectation = Literal["fires", "no_match", "needs"]
Language = Literal["c", "cxx", "fortran", "python"]
HowModel = Literal["mpi", "openmp", "threads", "any", "cuda", "hip", "openmp-target", "pytorch", "jax"]
Model = Literal["mpi", "openmp", "hybrid", "serial", "device"]

#: What an example writes for a fact that was not measured.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """A tuning step: the gaps to look at before it; ``own`` if the source of the table does not have it."""

    id: int
    name: str
    gaps: tuple[GapName, ...]
    mark: Mark
    own: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """A dependence between two steps (Hung and Davidson, figure 6): what a change in ``from_`` brings up again."""

    from_: int
    to: int
    kind: Literal["backward", "forward", "conflict"]
    basis: Literal["stated", "inferred", "own"]
    why: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Issue:
    """A performance issue of a step. ``gaps`` are those it shows in, where its actions do not tell."""

    id: str
    step: int
    name: str
    mark: Mark
    own: bool = False
    gaps: tuple[GapName, ...] = ()


@dataclass(frozen=True, slots=True)
class StepOrder:
    """The document ``steps.yaml``."""

    steps: tuple[Step, ...]
    arrows: tuple[Arrow, ...]
    issues: tuple[Issue, ...]


@dataclass(frozen=True, slots=True)
class How:
    """How to carry out an action, in one language or in any."""

    text: str
    mark: Mark
    language: Language | None = None
    before: str | None = None
    after: str | None = None


class Changed(str):
    """A fact or gap that an example gives another value."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Changed:
        """The name; ValueError if there is neither such a fact nor such a gap."""
        return cls(text if text in GAP_NAMES else FactName.parse(text))


def _check_given(name: str, text: str) -> None:
    """Raise ValueError where ``text`` is no value of a fact or gap."""
    if name in GAP_NAMES:
        parse_value(text, "share")
    elif text != UNKNOWN:
        parse_value(text, current_names().facts[name].unit)


@dataclass(frozen=True, slots=True)
class Example:
    """What an action says about a case, there with other values of some facts and gaps (``unknown``: not measured)."""

    case: CaseName = field(metadata=former_key("given"))
    expect: Expectation
    mark: Mark
    override: dict[Changed, str] = field(default_factory=dict, metadata=former_key("with"))

    def __post_init__(self) -> None:
        problems = []
        for name, text in self.override.items():
            try:
                _check_given(name, text)
            except ValueError as error:
                problems.append((("override", str(name)), f"{name}: found '{text}', {error}"))
        if problems:
            raise FieldErrors(problems)

    def override_facts(self, vocabulary: Mapping[str, Fact]) -> dict[str, Value | None]:
        """Return the facts that are given a value, None for unknown."""
        chosen = {str(name): text for name, text in self.override.items() if name not in GAP_NAMES}
        return {
            name: None if text == UNKNOWN else parse_value(text, vocabulary[name].unit) for name, text in chosen.items()
        }

    @property
    def gap_shares(self) -> dict[str, float]:
        """The gaps that are given a share of the run time."""
        chosen = {str(name): text for name, text in self.override.items() if name in GAP_NAMES}
        return {name: float(parse_value(text, "share")) for name, text in chosen.items()}


@dataclass(frozen=True, slots=True)
class Calibration:
    """What such a change won where it was measured: the least, the usual and the largest share of the seconds.

    ``of`` is the fact that tells the share of the gap's seconds that the change is about, or these seconds; they are
    the ceiling. ``wins`` is empty where nobody measured.
    """

    of: FactName
    mark: Mark
    wins: tuple[Annotated[float, Between(0, 1)], ...] = ()

    def __post_init__(self) -> None:
        if (self.wins and len(self.wins) != 3) or list(self.wins) != sorted(self.wins):
            raise FieldErrors([(("wins",), "expected three shares: the least, the usual and the largest")])


@dataclass(frozen=True, slots=True)
class Action:
    """A tuning action with all its properties."""

    id: str
    title: str
    step: StepNumber
    issue: IssueName
    targets: tuple[GapName, ...]
    when: When
    applies_to: tuple[Model, ...]
    effort: Annotated[int, Between(1, 5)]
    typical_fraction: Annotated[float, Between(0, 1)] = field(metadata=former_key("prior"))
    change: dict[str, str]
    why: str
    how: dict[HowModel, How | tuple[How, ...]]
    sources: tuple[str, ...]
    examples: tuple[Example, ...]
    mark: Mark
    gain: Calibration | None = None
    affects: tuple[AffectedName, ...] = ()
    helps: tuple[IssueName, ...] = ()
    hurts: tuple[IssueName, ...] = ()
    other: tuple[IssueName, ...] = ()
    conflicts: tuple[ActionName, ...] = ()
    enabled: bool = True
    replaces: ActionName | None = None
    requires: When | None = None

    @property
    def place(self) -> str:
        """Where the action stands: folder, file and line, whatever the folder lies in."""
        return f"{'/'.join(PurePath(self.mark.file).parts[-2:])}:{self.mark.line}"

    @property
    def comparisons(self) -> tuple[Leaf, ...]:
        """The comparisons of ``when``, in the order in which they are written."""
        return tuple(iterate_comparisons(self.when))

    @property
    def instructions(self) -> tuple[HowTo, ...]:
        """The how-to of all models and languages."""
        listed = ((model, how if isinstance(how, tuple) else (how,)) for model, how in self.how.items())
        return tuple(HowTo(model, h.text, h.language, h.before, h.after) for model, hows in listed for h in hows)


@dataclass(frozen=True, slots=True)
class Switch:
    """An entry of a user's file that switches an action off, or on again."""

    id: ActionName
    enabled: bool
    mark: Mark


Entry = Action | Switch


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All rules, in the order of the files; ``off`` are the actions that are switched off."""

    steps: tuple[Step, ...]
    arrows: tuple[Arrow, ...]
    issues: tuple[Issue, ...]
    actions: tuple[Action, ...]
    off: tuple[Action, ...] = ()

    def find_action(self, number: str) -> Action | None:
        """Return the action of that number, also one that is switched off; None if there is none."""
        return next((action for action in (*self.actions, *self.off) if action.id == number), None)

    def gaps_of_issue(self, number: str) -> tuple[str, ...]:
        """Return the gaps in which an issue shows: its own, else those its actions target, else those of its step."""
        issue = next(issue for issue in self.issues if issue.id == number)
        targets = tuple(
            gap for action in (*self.actions, *self.off) if action.issue == number for gap in action.targets
        )
        of_step = next((step.gaps for step in self.steps if step.id == issue.step), ())
        return tuple(dict.fromkeys(map(str, issue.gaps or targets or of_step)))
