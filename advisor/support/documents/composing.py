"""YAML text into a tree of nodes, built from the parser's events.

So size and depth are checked before anything is constructed, and nothing of YAML 1.1 decides what a word means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import yaml

from advisor.support.documents.nodes import (
    Mapping,
    Mark,
    Node,
    Parsed,
    Refused,
    Scalar,
    Sequence,
    UnreadableError,
    to_printable,
)

if TYPE_CHECKING:
    from advisor.model.errors import Problem

DEEPEST = 50  # collections inside one another
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML can be built without libyaml


def compose_document(text: str, file: str) -> Parsed:
    """The only node of a text, and what is wrong with it as YAML; without a node the problems say why.

    Raises ``UnreadableError`` for what is nested too deep.
    """
    try:
        return _Composer(text, file).compose_document()
    except yaml.MarkedYAMLError as error:
        return None, [_syntax_problem(error, file)]
    except yaml.YAMLError as error:
        return None, [Mark(file, 1, 1).make_problem(f"not YAML: {to_printable(str(error), 200)}")]


def _syntax_problem(error: yaml.MarkedYAMLError, file: str) -> Problem:
    found = error.problem_mark or error.context_mark
    mark = Mark(file, found.line + 1, found.column + 1) if found else Mark(file, 1, 1)
    said = " ".join(part for part in (error.problem, error.context) if part)
    hint = "; quote text that contains ': ' or ' #', or that starts with a special character"
    return mark.make_problem(f"not YAML: {to_printable(said, 200)}{hint}")


class _Composer:
    """Builds the tree of one document from events, collecting what is refused without stopping."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.events: Iterator[yaml.Event] = iter(yaml.parse(text, Loader=_LOADER))

    def compose_document(self) -> tuple[Node, list[Problem]]:
        """The first document's node (an empty scalar if there is none); a second document is a problem."""
        node: Node = Scalar(Mark(self.file, 1, 1), "", True)
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents == 2:
                    self._refuse_event(event, "a second document starts here; use one document per file, without '---'")
                    break
            elif isinstance(event, yaml.NodeEvent):
                node = self._compose_node(event, 0)
        return node, self.problems

    def _make_mark(self, event: yaml.Event) -> Mark:
        place = event.start_mark
        return Mark(self.file, place.line + 1, place.column + 1) if place else Mark(self.file, 1, 1)

    def _refuse_event(self, event: yaml.Event, message: str) -> None:
        self.problems.append(self._make_mark(event).make_problem(message))

    def _compose_node(self, event: yaml.Event, depth: int) -> Node:
        self._check_decoration(event)
        if isinstance(event, yaml.ScalarEvent):
            if bad := _UNWANTED.search(event.value):
                self._refuse_event(event, f"the text contains the control character U+{ord(bad[0]):04X}")
            return Scalar(self._make_mark(event), event.value, not event.style)
        if not isinstance(event, yaml.CollectionStartEvent):
            return Refused(self._make_mark(event))
        if depth >= DEEPEST:
            raise UnreadableError(self._make_mark(event).make_problem(f"nested deeper than {DEEPEST} levels"))
        is_list = isinstance(event, yaml.SequenceStartEvent)
        return self._compose_sequence(event, depth + 1) if is_list else self._compose_mapping(event, depth + 1)

    def _check_decoration(self, event: yaml.Event) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if not anchor and not tag:
            return
        name = to_printable(str(anchor or ""))
        if isinstance(event, yaml.AliasEvent):
            self._refuse_event(event, f"alias *{name}: aliases are not read, write the value out")
        elif name:
            self._refuse_event(event, f"anchor &{name}: anchors and aliases are not read, write the values out")
        if tag:
            self._refuse_event(
                event,
                f"tag {to_printable(tag.replace('tag:yaml.org,2002:', '!!'))}: tags are not read, "
                f"write the plain value",
            )

    def _compose_sequence(self, start: yaml.Event, depth: int) -> Sequence:
        items = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._compose_node(event, depth))
        return Sequence(self._make_mark(start), tuple(items))

    def _compose_mapping(self, start: yaml.Event, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, value = self._compose_node(event, depth), self._compose_node(next(self.events), depth)
            if self._is_usable(key, entries) and isinstance(key, Scalar):
                entries[key.text] = (key, value)
        return Mapping(self._make_mark(start), tuple(entries.values()))

    def _is_usable(self, key: Node, entries: dict[str, tuple[Scalar, Node]]) -> bool:
        if isinstance(key, Refused):
            return False
        if not isinstance(key, Scalar):
            message = "a list or a mapping cannot be a key; expected a word"
        elif key.text in entries:
            first = entries[key.text][0].mark.line
            message = f"key '{to_printable(key.text)}' a second time; the first is in line {first}"
        elif key.plain and key.text == "<<":
            message = "merge keys (<<) are not read; write the keys out"
        elif key.is_empty and not key.text:
            message = "a key is missing before ':'"
        else:
            return True
        self.problems.append(key.mark.make_problem(message))
        return False
