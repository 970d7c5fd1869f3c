"""Native ``.cali`` files: a tree of nodes, and records that refer to it.

A line is ``__rec=node``, ``__rec=ctx`` (a snapshot) or ``__rec=globals`` (the last one), with fields ``key=a=b=c``.
``\\`` escapes the separators. Nodes are values of attributes, attributes themselves are nodes, and their own nodes say
what they are; the first twelve are given. See ``CaliReader.cpp`` and ``Attribute.h`` of Caliper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import BinaryIO, Final

from advisor.formats.caliper.metrics import is_wanted_metric
from advisor.formats.caliper.tables import ACTIVITIES, END, RANK, THREAD, RecordRows, RecordTable
from advisor.model.errors import InputError
from advisor.model.records import Note

_LONGEST: Final = 1 << 20  # bytes of a line
_NESTED: Final = 256  # bit of the property of attributes that make up the path of regions
_NAME, _PROPERTY = 8, 10  # nodes that are given: attributes that name an attribute and hold its properties
_TYPE: Final = 9
_FIELD: Final = re.compile(r"(?:^|,)([a-z_]+)=((?:[^\\,]|\\.)*)", re.DOTALL)
_VALUE: Final = re.compile(r"(?:^|=)((?:[^\\=]|\\.)*)", re.DOTALL)
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_UNFINISHED: Final = Note(
    "Caliper file without end",
    "the record that closes a .cali file is missing; later records may be lost with it",
    0.3,
    "run the program to its end, or copy the file anew",
)


@dataclass(frozen=True, slots=True)
class _TreeNode:
    """A value of an attribute, given by its number, below the node ``parent`` (-1: none)."""

    attribute: int
    data: str
    parent: int


#: Types of values, and the attributes by which attributes are described.
_GIVEN: Final = {
    **{number: _TreeNode(_TYPE, "", -1) for number in (*range(8), 11)},
    _NAME: _TreeNode(_NAME, "cali.attribute.name", 3),
    _TYPE: _TreeNode(_NAME, "cali.attribute.type", 7),
    _PROPERTY: _TreeNode(_NAME, "cali.attribute.prop", 1),
}


@dataclass(frozen=True, slots=True)
class _RecordContext:
    """What the references of a record say: the path of regions, an ended region, values such as rank and thread."""

    path: int
    ends: bool
    names: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _UsedAttributes:
    """The attributes in a record that can matter, and their places among its values."""

    names: tuple[str, ...]
    places: list[int]


class _CaliReader:
    """One pass over a file."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 0
        self.nodes = dict(_GIVEN)
        self.rows = RecordRows()
        self.globals: dict[str, str] = {}
        self.ended = False
        self._contexts: dict[str, _RecordContext] = {}
        self._used: dict[str, _UsedAttributes] = {}

    def make_error(self, reason: str) -> InputError:
        return InputError(self.path, reason, f"line {self.line}")

    def add_record(self, text: str) -> None:
        """Take in one line."""
        kind, _, rest = text.partition(",")
        fields: dict[str, str] = dict(_FIELD.findall(rest))
        if sum(len(key) + len(value) + 2 for key, value in fields.items()) != len(rest) + 1:
            raise self.make_error("the line is not a Caliper record")
        if self.ended and kind != "__rec=node":
            raise self.make_error("records after the last one: several profiles in one file")
        if kind == "__rec=node":
            self._add_node(fields)
        elif kind == "__rec=ctx":
            self._add_snapshot(fields)
        elif kind == "__rec=globals":
            self._read_globals(fields)
        else:
            raise self.make_error(f"unknown record {kind[:40]!r}")

    def _parse_number(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise self.make_error(f"{text[:40]!r} is not a node number")
        return int(text)

    def _require_node(self, text: str) -> int:
        number = self._parse_number(text)
        if number not in self.nodes:
            raise self.make_error(f"node {number} is not defined")
        return number

    def _add_node(self, fields: dict[str, str]) -> None:
        if not {"id", "attr", "data"} <= fields.keys():
            raise self.make_error("a node without id, attr or data")
        number, attribute = self._parse_number(fields["id"]), self._require_node(fields["attr"])
        parent = self._require_node(fields["parent"]) if "parent" in fields else -1
        node = _TreeNode(attribute, _unescape_text(fields["data"]), parent)
        if self.nodes.setdefault(number, node) != node:
            if number == 0 and self.line == 1:  # only Caliper 1 writes the types of values that all files have
                raise self.make_error("a trace of Caliper 1, which is not read: record it by Caliper 2")
            raise self.make_error(f"node {number} is defined twice")

    def _add_snapshot(self, fields: dict[str, str]) -> None:
        refs = fields.get("ref", "")
        context = self._contexts.get(refs)
        if context is None:
            context = self._contexts.setdefault(refs, self._build_context(refs))
        attributes = fields.get("attr", "")
        used = self._used.get(attributes)
        if used is None:
            used = self._used.setdefault(attributes, self._select_attributes(attributes))
        texts = self._split_values(fields.get("data", ""), attributes)
        values = self._parse_numbers(used.names, [texts[n] for n in used.places])
        names = used.names
        if context.names:
            names, values = (*context.names, *names), [*self._parse_numbers(context.names, context.values), *values]
        self.rows.add_record(context.path, context.ends, names, values)

    def _select_attributes(self, attributes: str) -> _UsedAttributes:
        """Return which of the values of a record with these attributes can matter."""
        named = [self._attribute_name(text) for text in attributes.split("=")] if attributes else []
        places = [n for n, name in enumerate(named) if name in (RANK, THREAD) or is_wanted_metric(name)]
        return _UsedAttributes(tuple(named[n] for n in places), places)

    def _split_values(self, data: str, attributes: str) -> list[str]:
        values = _VALUE.findall(data) if "\\" in data else data.split("=")
        if len(values) != attributes.count("=") + 1:
            raise self.make_error("as many attributes as values were expected")
        return values

    def _parse_numbers(self, names: Sequence[str], texts: Sequence[str]) -> list[float]:
        try:
            values = [float(text) for text in texts]
        except ValueError:
            values = []
        if len(values) == len(texts) and isfinite(sum(values)):
            return values
        for name, text in zip(names, texts, strict=True):
            if not _NUMBER.fullmatch(text) or not isfinite(float(text)):
                raise self.make_error(f"{text[:40]!r} is not a finite number for {name}")
        raise self.make_error("the numbers of the record are too large")

    def _attribute_name(self, text: str) -> str:
        node: _TreeNode = self.nodes[self._require_node(text)]
        if node.attribute != _NAME:
            raise self.make_error(f"node {text} is not an attribute")
        return node.data

    def follow_references(self, refs: str) -> list[tuple[int, str]]:
        """Return attribute and value of the nodes that ``refs`` lead to, outermost first, the last reference first."""
        found: list[tuple[int, str]] = []
        for text in refs.split("=") if refs else ():
            at, steps = self._require_node(text), 0
            while at >= 0:
                node = self.nodes[at]
                found.append((node.attribute, node.data))
                at, steps = node.parent, steps + 1
                if steps > len(self.nodes):
                    raise self.make_error(f"node {text} is its own parent")
        return found[::-1]

    def _build_context(self, refs: str) -> _RecordContext:
        at, ends, activity = -1, False, None
        values: dict[str, str] = {}
        for attribute, data in self.follow_references(refs):
            name = self.nodes[attribute].data
            if self._property_bits(attribute) & _NESTED:
                at = self.rows.paths.add_label(at, data)
            elif END.fullmatch(name):
                ends = True
            elif name in ACTIVITIES:
                activity = (data, ACTIVITIES[name])
            elif name in (RANK, THREAD):
                values[name] = data
        if activity is not None:
            at = self.rows.paths.add_label(at, *activity)
        return _RecordContext(at, ends, tuple(values), tuple(values.values()))

    def _property_bits(self, attribute: int) -> int:
        at, steps = self.nodes[attribute].parent, 0
        while at >= 0 and steps < 100:
            node = self.nodes[at]
            if node.attribute == _PROPERTY:
                return self._parse_number(node.data)
            at, steps = node.parent, steps + 1
        return 0

    def find_units(self) -> dict[str, str]:
        """Return the units that attributes state."""
        found = {}
        for node in self.nodes.values():
            at, steps = (node.parent, 0) if node.attribute == _NAME else (-1, 0)
            while at >= 0 and steps < 100:
                above = self.nodes[at]
                if self.nodes[above.attribute].data == "attribute.unit":
                    found[node.data] = above.data
                at, steps = above.parent, steps + 1
        return found

    def _read_globals(self, fields: dict[str, str]) -> None:
        for attribute, data in self.follow_references(fields.get("ref", "")):
            self.globals[self.nodes[attribute].data] = data
        self.ended = True


def read_cali_table(path: Path, stream: BinaryIO) -> RecordTable:
    """Return the records of the ``.cali`` file at ``path``, opened as ``stream``; raises ``InputError`` with a line."""
    reading = _CaliReader(path)
    while line := stream.readline(_LONGEST + 1):
        reading.line += 1
        if len(line) > _LONGEST:
            raise reading.make_error(f"a line of more than {_LONGEST:,} bytes")
        if not line.endswith(b"\n"):
            raise reading.make_error("the file ends in the middle of a line")
        text = line[:-1].decode("utf-8", "surrogateescape")
        if text:
            reading.add_record(text)
    return reading.rows.build_table(
        path, reading.find_units(), reading.globals, () if reading.ended else (_UNFINISHED,)
    )


def _unescape_text(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], text) if "\\" in text else text
