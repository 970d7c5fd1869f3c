"""YAML documents into frozen dataclasses; every mistake with its place, all of them at once.

The fields of a dataclass are the keys of a mapping (``is_`` and ``not_`` stand for the keys ``is`` and ``not``);
fields without default are required. The type of a field says what may stand there:

    str, int, float, bool, Literal      a scalar; ``on``, ``1.10`` or ``1e3`` mean what the type makes of them
    Annotated[float, Dimension]         a quantity with its unit (``advisor.model.units``: Seconds, Bytes, Share …)
    Annotated[X, Dimension]             the same by ``X.parse(text, dimension)``
    Annotated[X, Between(1, 5)]         a number within limits, the limits included
    a class with ``parse(text)``        a scalar; the ValueError of ``parse`` is the message
    tuple[X, ...], dict[str, X]         a list; a mapping with free keys (or with Literal keys)
    a dataclass, unions, X | None       dataclasses in a union are told apart by their keys
    Marked[X], Mark                     X with its place; the place of the mapping itself (not a key)
    object                              anything: text, numbers, truth values, tuples and dicts

A ValueError from a record's ``__post_init__`` becomes a problem at its mapping; ``FieldErrors`` are several, each at
the place of its field.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import GenericAlias, NoneType
from typing import TypeVar, cast, get_args, get_origin

from advisor.model.errors import DocumentError, Problem
from advisor.support.documents import scalars, yaml_nodes
from advisor.support.documents.field_types import (
    Marked,
    RecordField,
    describe_expectation,
    fields_of,
    inner_type,
    is_dict,
    is_record,
    limits_of,
    mark_names,
    node_kinds,
    parse_scalar,
    union_members,
)
from advisor.support.documents.nodes import Mapping, Node, Parsed, Refused, Scalar, Sequence, to_printable
from advisor.support.documents.scalars import suggest_word

T = TypeVar("T")


def load_document(path: Path, record: type[T]) -> T:
    """The record that the document holds; DocumentError with everything that is wrong with it."""
    return load_many((path,), record)[0]


def load_list(path: Path, record: type[T]) -> tuple[T, ...]:
    """The records of a document that is a list of them; DocumentError with everything that is wrong with it."""
    return load_lists((path,), record)


def load_many(paths: Iterable[Path], record: type[T]) -> tuple[T, ...]:
    """One record from each document; DocumentError with the mistakes of all of them."""
    return cast("tuple[T, ...]", _build_all(map(yaml_nodes.read_yaml, paths), record))


def load_lists(paths: Iterable[Path], record: type[T]) -> tuple[T, ...]:
    """The records of all documents, each a list of them; DocumentError with the mistakes of all of them."""
    return build_lists(map(yaml_nodes.read_yaml, paths), record)


def build_lists(parsed: Iterable[Parsed], record: type[T]) -> tuple[T, ...]:
    """The records of documents that ``yaml_nodes.parse`` returned, as ``load_lists`` does."""
    found = cast("tuple[tuple[T, ...], ...]", _build_all(parsed, GenericAlias(tuple, (record, ...))))
    return tuple(item for items in found for item in items)


def _build_all(parsed: Iterable[Parsed], hint: object) -> tuple[object, ...]:
    problems: list[Problem] = []
    values = tuple(_build_document(node, found, hint, problems) for node, found in parsed)
    if problems:
        raise DocumentError(problems)
    return values


def _build_document(node: Node | None, found: list[Problem], hint: object, problems: list[Problem]) -> object:
    problems.extend(found)
    return _FAILED if node is None else _NodeReader(problems).read_node(node, hint, "")


class FieldErrors(ValueError):
    """Several mistakes inside a record, found when it is made: the path of keys to each, and what is wrong there."""

    def __init__(self, problems: Iterable[tuple[tuple[str, ...], str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{'.'.join(path)}: {message}" for path, message in self.problems))


class _Failed:
    """Stands for a value that could not be read; its problem is noted."""


_FAILED = _Failed()


class _NodeReader:
    """Walks nodes along types, collecting problems; a value that cannot be read is ``_FAILED``."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems

    def read_node(self, node: Node, hint: object, key: str) -> object:
        """The value of ``node`` for a field of type ``hint``; ``key`` names the field in messages."""
        if isinstance(node, Refused):
            return _FAILED
        alternatives = union_members(hint)
        if isinstance(node, Scalar) and node.is_empty:
            return (
                None
                if NoneType in alternatives or hint is object
                else self._note_unexpected(node, describe_expectation(hint), key)
            )
        fitting = [one for one in alternatives if one is not NoneType and type(node) in node_kinds(one)]
        if not fitting:
            return self._note_unexpected(node, describe_expectation(hint), key)
        if len(fitting) == 1:
            return self._read_one(node, fitting[0], key)
        return (
            self._read_mixed_scalar(node, fitting, key)
            if isinstance(node, Scalar)
            else self._read_mixed(node, fitting, key)
        )

    def _read_one(self, node: Node, hint: object, key: str) -> object:
        if get_origin(hint) is Marked:
            value = self.read_node(node, inner_type(hint), key)
            return _FAILED if value is _FAILED else Marked(value, node.mark)
        if isinstance(node, Sequence):
            item = object if hint is object else get_args(hint)[0]
            return self._require_complete(tuple(self.read_node(one, item, key) for one in node.items))
        if isinstance(node, Mapping):
            return (
                self._read_record(node, hint, key)
                if is_record(hint) and isinstance(hint, type)
                else self._read_dict(node, hint, key)
            )
        return self._read_scalar(node, hint, key) if isinstance(node, Scalar) else _FAILED

    def _require_complete(self, values: tuple[object, ...]) -> object:
        return _FAILED if any(value is _FAILED for value in values) else values

    def _read_dict(self, node: Mapping, hint: object, owner: str) -> object:
        key_hint, value_hint = get_args(hint) if is_dict(hint) else (str, object)
        keys = self._require_complete(tuple(self._read_scalar(key, key_hint, owner) for key, _ in node.entries))
        values = self._require_complete(
            tuple(self.read_node(value, value_hint, key.text) for key, value in node.entries)
        )
        if not isinstance(keys, tuple) or not isinstance(values, tuple):
            return _FAILED
        return dict(zip(keys, values, strict=True))

    def _read_record(self, node: Mapping, record: type, key: str) -> object:
        by_key = {field.key: field for field in fields_of(record)}
        values: dict[str, object] = {}
        meant: set[str | None] = set()
        for name, value in node.entries:
            if name.text in by_key:
                field = by_key[name.text]
                values[field.name] = self.read_node(value, field.hint, field.key)
            else:
                meant.add(self._unknown_key(name, by_key))
        missing = [field for field in by_key.values() if field.required and field.name not in values]
        self._note_missing(node, [field.key for field in missing if field.key not in meant], key)
        if meant or missing or any(value is _FAILED for value in values.values()):
            return _FAILED
        try:
            return record(**values | dict.fromkeys(mark_names(record), node.mark))
        except FieldErrors as errors:
            for path, message in errors.problems:
                self._note_problem(_find_node(node, path), to_printable(message, 300))
        except ValueError as error:
            self._note_problem(node, to_printable(str(error), 300))
        return _FAILED

    def _unknown_key(self, name: Scalar, by_key: dict[str, RecordField]) -> str | None:
        renamed = next((field.key for field in by_key.values() if field.former_key == name.text), None)
        near = renamed or scalars.find_nearest(name.text, by_key)
        hint = f" (renamed to '{near}')" if renamed else f" (did you mean '{near}'?)" if near else ""
        self._note_problem(
            name, f"unknown key '{to_printable(name.text)}'{hint}; expected {scalars.format_list(by_key)}"
        )
        return near

    def _note_missing(self, node: Mapping, keys: list[str], owner: str) -> None:
        for key in keys:
            self._note_problem(node, f"missing key '{key}'{f' in {to_printable(owner)}' if owner else ''}")

    def _read_mixed(self, node: Node, fitting: list[object], key: str) -> object:
        """For lists the first alternative; for mappings the record whose keys fit best, else the free mapping."""
        if not isinstance(node, Mapping):
            return self._read_one(node, fitting[0], key)
        names = {name.text for name, _ in node.entries}
        records = [one for one in fitting if is_record(one) and isinstance(one, type)]
        best = max(records, key=lambda record: _rate_fit(names, record), default=None)
        if best is not None and _rate_fit(names, best)[0] > 0:
            return self._read_record(node, best, key)
        free = [one for one in fitting if is_dict(one)]
        return self._read_one(node, free[0], key) if free else self._refuse_mapping(node, records, key)

    def _refuse_mapping(self, node: Mapping, records: list[type], key: str) -> object:
        known = {field.key for record in records for field in fields_of(record)}
        names = [name.text for name, _ in node.entries]
        near = next((hint for name in names if (hint := suggest_word(name, known))), "")
        found = f"a mapping with {scalars.format_list(map(to_printable, names))}" if names else "an empty mapping"
        return self._note_problem(node, f"{_key_label(key)}found {found}{near}, expected {_describe_types(records)}")

    def _read_mixed_scalar(self, node: Scalar, fitting: list[object], key: str) -> object:
        """The first alternative that reads the scalar; text only if nothing else does, or if it is in quotes."""
        has_text = str in fitting
        if has_text and not node.plain:
            return node.text
        if has_text and bool in fitting and scalars.is_doubtful_truth(node.text):
            return self._note_problem(
                node, f"{_key_label(key)}found {_describe_node(node)}, expected true or false, or the word in quotes"
            )
        ordered = sorted(fitting, key=lambda one: (one is str, one is not bool, one is not int))
        for one in ordered:
            attempt = _NodeReader([])
            if (value := attempt.read_node(node, one, key)) is not _FAILED:
                return value
        return self._note_unexpected(node, _describe_types(fitting), key)

    def _read_scalar(self, node: Scalar, hint: object, key: str) -> object:
        try:
            value = parse_scalar(node, hint)
        except ValueError as error:
            return self._note_problem(node, f"{_key_label(key)}found {_describe_node(node)}, {error}")
        limits = limits_of(hint)
        if limits and isinstance(value, int | float) and not limits.low <= value <= limits.high:
            expected = f"expected a number from {limits.low:g} to {limits.high:g}"
            return self._note_problem(node, f"{_key_label(key)}found {_describe_node(node)}, {expected}")
        return value

    def _note_unexpected(self, node: Node, expected: str, key: str) -> object:
        return self._note_problem(node, f"{_key_label(key)}found {_describe_node(node)}, expected {expected}")

    def _note_problem(self, node: Node, message: str) -> object:
        self.problems.append(node.mark.make_problem(message))
        return _FAILED


def _rate_fit(names: set[str], record: type) -> tuple[int, int, int]:
    """How well keys fit a record: keys shared, required keys missing, keys unknown (the last two negative)."""
    known = {field.key for field in fields_of(record)}
    required = {field.key for field in fields_of(record) if field.required}
    return len(names & known), -len(required - names), -len(names - known)


def _find_node(node: Node, path: tuple[str, ...]) -> Node:
    """The node at the end of ``path``, or the deepest one that exists."""
    for key in path:
        inside = [value for name, value in node.entries if name.text == key] if isinstance(node, Mapping) else []
        if not inside:
            break
        node = inside[0]
    return node


def _describe_types(hints: Iterable[object]) -> str:
    return " or ".join(dict.fromkeys(map(describe_expectation, hints)))


def _key_label(key: str) -> str:
    return f"{to_printable(key)}: " if key else ""


def _describe_node(node: Node) -> str:
    if not isinstance(node, Scalar):
        return "a list" if isinstance(node, Sequence) else "a mapping"
    if node.plain:
        return f"'{to_printable(node.text)}'" if node.text else "nothing"
    return f'"{to_printable(node.text)}"'
