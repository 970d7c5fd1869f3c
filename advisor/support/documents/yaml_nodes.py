"""A YAML file as a tree of nodes that know their place, with the limits that make foreign files safe.

Scalars stay the text that the author wrote: what ``on``, ``1.10`` or ``1e3`` mean is decided by the type of the field
they fill (``advisor.support.documents``), not by YAML 1.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from advisor.model.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGEST = 1_000_000  # bytes of a document
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a document: file, and line and column counted from 1."""

    file: str
    line: int
    column: int

    def problem(self, message: str) -> Problem:
        """A problem at this place."""
        return Problem(self.file, self.line, self.column, message)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A word, number or text as written; ``plain`` when it stood without quotes."""

    mark: Mark
    text: str
    plain: bool

    @property
    def empty(self) -> bool:
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
    """The document cannot be read on: what lies at ``problem``."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def printable(text: str, longest: int = 60) -> str:
    """``text`` for a message: control and direction characters escaped, cut at ``longest`` characters."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def parse(path: Path, shorten: Callable[[bytes], bytes] | None = None) -> Parsed:
    """The document's only node, and what is wrong with it as YAML; without a node the problems say why.

    ``shorten`` may leave out what nobody will ask for, but no line.
    """
    from advisor.support.documents import composing  # loads the parser of YAML, which most commands do without

    start = Mark(printable(str(path), 1000), 1, 1)
    try:
        with path.open("rb") as stream:
            text = _text(stream, start, shorten)
        return composing.document(text, start.file)
    except OSError as error:
        return None, [start.problem(f"cannot be read: {error.strerror or type(error).__name__}")]
    except UnreadableError as error:
        return None, [error.problem]


def _text(stream: IO[bytes], start: Mark, shorten: Callable[[bytes], bytes] | None) -> str:
    raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UnreadableError(start.problem(f"larger than the {LARGEST} bytes a document may have"))
    try:
        text = (shorten(raw) if shorten else raw).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8")
        raise UnreadableError(_after(good, start.file).problem("not UTF-8 text; save the file as UTF-8")) from None
    if bad := _UNPRINTABLE.search(text):
        place = _after(text[: bad.start()], start.file)
        raise UnreadableError(place.problem(f"the character U+{ord(bad[0]):04X} cannot stand in a YAML file"))
    return text


def _after(text: str, file: str) -> Mark:
    return Mark(file, text.count("\n") + 1, len(text) - text.rfind("\n"))
