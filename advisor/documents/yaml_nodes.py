"""YAML text into a tree of nodes that know their place, with the limits that make foreign files safe.

The tree is built from the parser's events, so that size and depth are checked before anything is constructed,
and scalars stay the text that the author wrote: what ``on``, ``1.10`` or ``1e3`` mean is decided by the type of the
field they fill (``advisor.documents``), not by YAML 1.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import yaml

from advisor.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

LARGEST = 1_000_000  # bytes of a document
DEEPEST = 50  # collections inside one another
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML can be built without libyaml


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


class UnreadableError(Exception):
    """The document cannot be read on: what lies at ``problem``."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def printable(text: str, longest: int = 60) -> str:
    """``text`` for a message: control and direction characters escaped, cut at ``longest`` characters."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def parse(path: Path | Traversable) -> tuple[Node | None, list[Problem]]:
    """The document's only node, and what is wrong with it as YAML; without a node the problems say why."""
    start = Mark(printable(str(path), 1000), 1, 1)
    try:
        with path.open("rb") as stream:
            text = _text(stream, start)
        return _Composer(text, start.file).document()
    except OSError as error:
        return None, [start.problem(f"cannot be read: {error.strerror or type(error).__name__}")]
    except UnreadableError as error:
        return None, [error.problem]
    except yaml.MarkedYAMLError as error:
        return None, [_syntax_problem(error, start.file)]
    except yaml.YAMLError as error:
        return None, [start.problem(f"not YAML: {printable(str(error), 200)}")]


def _text(stream: IO[bytes], start: Mark) -> str:
    raw = stream.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UnreadableError(start.problem(f"larger than the {LARGEST} bytes a document may have"))
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        good = raw[: error.start].decode("utf-8")
        raise UnreadableError(_after(good, start.file).problem("not UTF-8 text; save the file as UTF-8")) from None
    if bad := _UNPRINTABLE.search(text):
        place = _after(text[: bad.start()], start.file)
        raise UnreadableError(place.problem(f"the character U+{ord(bad[0]):04X} cannot stand in a YAML file"))
    return text


def _after(text: str, file: str) -> Mark:
    return Mark(file, text.count("\n") + 1, len(text) - text.rfind("\n"))


def _syntax_problem(error: yaml.MarkedYAMLError, file: str) -> Problem:
    found = error.problem_mark or error.context_mark
    mark = Mark(file, found.line + 1, found.column + 1) if found else Mark(file, 1, 1)
    said = " ".join(part for part in (error.problem, error.context) if part)
    hint = "; a text with ': ' or ' #' in it, or one that begins with a sign, needs quotes"
    return mark.problem(f"not YAML: {printable(said, 200)}{hint}")


class _Composer:
    """Builds the tree of one document from events, collecting what is refused without stopping."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=_LOADER))

    def document(self) -> tuple[Node, list[Problem]]:
        """The first document's node (an empty scalar if there is none); a second document is a problem."""
        node: Node = Scalar(Mark(self.file, 1, 1), "", True)
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents == 2:
                    self._refuse(event, "a second document begins; write one document in a file, without '---' inside")
                    break
            elif isinstance(event, yaml.NodeEvent):
                node = self._node(event, 0)
        return node, self.problems

    def _mark(self, event: yaml.Event) -> Mark:
        place = event.start_mark
        return Mark(self.file, place.line + 1, place.column + 1) if place else Mark(self.file, 1, 1)

    def _refuse(self, event: yaml.Event, message: str) -> None:
        self.problems.append(self._mark(event).problem(message))

    def _node(self, event: yaml.Event, depth: int) -> Node:
        self._check_decoration(event)
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            if depth >= DEEPEST:
                raise UnreadableError(self._mark(event).problem(f"nested deeper than {DEEPEST} levels"))
            is_list = isinstance(event, yaml.SequenceStartEvent)
            return self._sequence(event, depth + 1) if is_list else self._mapping(event, depth + 1)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        return Refused(self._mark(event))

    def _check_decoration(self, event: yaml.Event) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if not anchor and not tag:
            return
        name = printable(str(anchor or ""))
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, f"alias *{name}: aliases are not read, write the value out")
        elif name:
            self._refuse(event, f"anchor &{name}: anchors and aliases are not read, write the values out")
        if tag:
            self._refuse(
                event,
                f"tag {printable(tag.replace('tag:yaml.org,2002:', '!!'))}: tags are not read, write the plain value",
            )

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        if bad := _UNWANTED.search(event.value):
            self._refuse(event, f"the text contains the control character U+{ord(bad[0]):04X}")
        return Scalar(self._mark(event), event.value, not event.style)

    def _sequence(self, start: yaml.Event, depth: int) -> Sequence:
        items = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._node(event, depth))
        return Sequence(self._mark(start), tuple(items))

    def _mapping(self, start: yaml.Event, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, value = self._node(event, depth), self._node(next(self.events), depth)
            if self._is_usable(key, entries) and isinstance(key, Scalar):
                entries[key.text] = (key, value)
        return Mapping(self._mark(start), tuple(entries.values()))

    def _is_usable(self, key: Node, entries: dict[str, tuple[Scalar, Node]]) -> bool:
        if isinstance(key, Refused):
            return False
        if not isinstance(key, Scalar):
            message = "a list or a mapping cannot be a key; expected a word"
        elif key.text in entries:
            first = entries[key.text][0].mark.line
            message = f"key '{printable(key.text)}' a second time; the first is in line {first}"
        elif key.plain and key.text == "<<":
            message = "merge keys (<<) are not read; write the keys out"
        elif key.empty and not key.text:
            message = "a key is missing before ':'"
        else:
            return True
        self.problems.append(key.mark.problem(message))
        return False
