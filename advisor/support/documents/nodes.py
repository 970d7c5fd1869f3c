"""The nodes of a YAML file: words, lists and mappings that know their place.

Scalars stay the text that the author wrote: what ``on``, ``1.10`` or ``1e3`` mean is decided by the type of the field
they fill (``advisor.support.documents``), not by YAML 1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from advisor.model.errors import Problem


class Mark(NamedTuple):
    """A place in a document: file, and line and column counted from 1."""

    file: str
    line: int
    column: int

    def make_problem(self, message: str) -> Problem:
        """A problem at this place."""
        return Problem(self.file, self.line, self.column, message)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word, number or text as written; ``plain`` when it stood without quotes."""

    mark: Mark
    text: str
    plain: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing, ``null`` or ``~`` was written."""
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    mark: Mark
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in their order; no key occurs twice."""

    mark: Mark
    entries: tuple[tuple[Scalar, Node], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Stands where something was written that is not read; its problem is already noted."""

    mark: Mark


Node = Scalar | Sequence | Mapping | Refused
#: The only node of a document, None where there is none, and what is wrong with it as YAML.
Parsed = tuple[Node | None, list[Problem]]


class UnreadableError(Exception):
    """The document cannot be read on: what lies at ``make_problem``."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def to_printable(text: str, longest: int = 60) -> str:
    """``text`` for a message: control and direction characters escaped, cut at ``longest`` characters."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
