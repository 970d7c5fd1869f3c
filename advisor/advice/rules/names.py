"""Check the names in rules: facts, gaps, steps, issues, actions, cases.

What names exist depends on plugins and on the other files, so they are set for the time in which documents are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from advisor.advice.facts.vocabulary import facts_by_name
from advisor.model.records import GAP_NAMES
from advisor.support.documents import scalars

if TYPE_CHECKING:
    from advisor.advice.facts.fact_records import Fact


@dataclass(frozen=True, slots=True)
class RuleNames:
    """The names in force; None where any is accepted."""

    facts: Mapping[str, Fact]
    steps: Collection[int] | None = None
    issues: Collection[str] | None = None
    actions: Collection[str] | None = None
    cases: Collection[str] | None = None


_NAMES: Final[ContextVar[RuleNames | None]] = ContextVar("names", default=None)


@contextmanager
def use_names(names: RuleNames) -> Iterator[None]:
    """Check the names in documents that are read inside the ``with`` against ``current_names``."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def current_names() -> RuleNames:
    """Return the names in force; outside of ``use_names`` the built-in vocabulary and any step, issue, action, case."""
    return _NAMES.get() or RuleNames(facts_by_name())


def _require_known(text: str, known: Collection[str] | None, what: str) -> str:
    if known is not None and text not in known:
        raise ValueError(f"there is no such {what}{scalars.suggest_word(text, known)}")
    return text


class FactName(str):
    """The name of a fact of the vocabulary."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The name; ValueError if there is no such fact."""
        return cls(_require_known(text, current_names().facts, "fact"))


class GapName(str):
    """The letter of a gap."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The letter; ValueError if there is no such gap."""
        if text not in GAP_NAMES:
            raise ValueError(f"there is no such gap{_gap_hint(text)}; expected one of {', '.join(GAP_NAMES)}")
        return cls(text)


def _gap_hint(text: str) -> str:
    near = next((name for name in GAP_NAMES if name.rstrip("'") == text.rstrip("'’`").upper()), None)
    return f' (did you mean "{near}"?)' if near else ""


class AffectedName(str):
    """The letter of a gap, or M: the machine bound itself, which changes with the operations of the source."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The letter; ValueError if there is no such gap."""
        return cls(text if text == "M" else GapName.parse(text))


class IssueName(str):
    """The number of an issue, ``I-15``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The number; ValueError if there is no such issue."""
        return cls(_require_known(text, current_names().issues, "issue"))


class ActionName(str):
    """The number of an action, ``A-29``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The number; ValueError if there is no such action."""
        return cls(_require_known(text, current_names().actions, "action"))


class CaseName(str):
    """The name of a case that examples are tried on."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """The name; ValueError if there is no such case."""
        return cls(_require_known(text, current_names().cases, "case"))


class StepNumber(int):
    """The number of a tuning step."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The number; ValueError if there is no such step."""
        number = scalars.parse_whole_number(text)
        known = current_names().steps
        if known is not None and number not in known:
            raise ValueError(f"there is no such step; expected one of {', '.join(map(str, sorted(known)))}")
        return cls(number)
