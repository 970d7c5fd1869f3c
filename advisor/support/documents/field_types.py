"""What the type of a record's field says about the nodes that may fill it (see ``advisor.support.documents``)."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as AbstractMapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Generic, Literal, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from advisor.model.units import Dimension, parse_with_dimension
from advisor.support.documents import scalars
from advisor.support.documents.nodes import Mapping, Mark, Scalar, Sequence

T = TypeVar("T")
_NAMES: dict[object, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "nothing",
    object: "anything",
}
_READINGS: dict[object, Callable[[str], object]] = {
    int: scalars.parse_whole_number,
    float: scalars.parse_number,
    bool: scalars.parse_truth,
    object: scalars.parse_scalar,
}


@dataclass(frozen=True, slots=True)
class Between:
    """Limits of a number, included; ``Annotated[int, Between(1, 5)]``."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Marked(Generic[T]):
    """A value and the place where it stands."""

    value: T
    mark: Mark


@dataclass(frozen=True, slots=True)
class RecordField:
    """One field of a record: its name, its key and what that was called before, its type, whether it is required."""

    name: str
    key: str
    hint: object
    required: bool
    former_key: str | None


def former_key(name: str) -> dict[str, str]:
    """Return the metadata of a field whose key used to be ``name``; errors on the old key name the new one."""
    return {"former_key": name}


@cache
def fields_of(record: type) -> tuple[RecordField, ...]:
    """The fields of a dataclass that keys fill, in their order."""
    hints = get_type_hints(record, include_extras=True)
    found = ((field, hints[field.name]) for field in fields(record) if field.init and hints[field.name] is not Mark)
    return tuple(
        RecordField(
            field.name,
            field.name.removesuffix("_"),
            hint,
            field.default is field.default_factory is MISSING,
            field.metadata.get("former_key"),
        )
        for field, hint in found
    )


@cache
def mark_names(record: type) -> tuple[str, ...]:
    """The fields of a dataclass that take the place of the mapping."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(field.name for field in fields(record) if hints[field.name] is Mark)


@cache
def union_members(hint: object) -> tuple[object, ...]:
    """The alternatives of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


@cache
def is_record(hint: object) -> bool:
    """Whether ``hint`` is a dataclass that a mapping can fill."""
    return isinstance(hint, type) and is_dataclass(hint) and not hasattr(hint, "parse")


@cache
def is_dict(hint: object) -> bool:
    """Whether ``hint`` is a mapping with free keys."""
    return get_origin(hint) in (dict, AbstractMapping)


@cache
def inner_type(hint: object) -> object:
    """The type inside ``Marked[X]`` and ``Annotated[X, …]``."""
    return get_args(hint)[0] if get_origin(hint) in (Marked, Annotated) else hint


@cache
def dimension_of(hint: object) -> Dimension | None:
    """The dimension of a quantity's type."""
    if get_origin(hint) is not Annotated:
        return None
    return next((extra for extra in get_args(hint)[1:] if isinstance(extra, Dimension)), None)


@cache
def limits_of(hint: object) -> Between | None:
    """The limits of a number's type."""
    if get_origin(hint) is not Annotated:
        return None
    return next((extra for extra in get_args(hint)[1:] if isinstance(extra, Between)), None)


@cache
def node_kinds(hint: object) -> frozenset[type]:
    """The kinds of nodes that can fill a field of this type."""
    if hint is object:
        return frozenset({Scalar, Sequence, Mapping})
    if len(alternatives := union_members(hint)) > 1:
        return frozenset().union(*map(node_kinds, alternatives))
    if inner_type(hint) is not hint:
        return node_kinds(inner_type(hint))
    if get_origin(hint) is tuple:
        return frozenset({Sequence})
    return frozenset({Mapping if is_record(hint) or is_dict(hint) else Scalar})


def describe_expectation(hint: object) -> str:
    """What may fill a field of this type, in words."""
    if len(alternatives := union_members(hint)) > 1:
        return " or ".join(dict.fromkeys(describe_expectation(one) for one in alternatives if one is not NoneType))
    if dimension := dimension_of(hint):
        return f"a {dimension.name} such as '{dimension.example}'"
    if inner_type(hint) is not hint:
        return describe_expectation(inner_type(hint))
    if get_origin(hint) is Literal:
        return f"one of {scalars.format_list(map(str, get_args(hint)))}"
    if get_origin(hint) is tuple:
        return "a list"
    if is_record(hint) and isinstance(hint, type):
        return f"a mapping with {scalars.format_list(field.key for field in fields_of(hint))}"
    return "a mapping" if is_dict(hint) else _NAMES.get(hint, f"a {getattr(hint, '__name__', str(hint)).lower()}")


def parse_scalar(node: Scalar, hint: object) -> object:
    """The scalar as ``hint`` wants it; ValueError with what was expected."""
    wanted = inner_type(hint)
    if dimension := dimension_of(hint):
        own = cast("_Quantity", wanted)
        return parse_with_dimension(node.text, dimension) if wanted is float else own.parse(node.text, dimension)
    if wanted is str or (wanted is object and not node.plain):
        return node.text
    if get_origin(wanted) is Literal:
        return _parse_literal(node.text, get_args(wanted))
    reading = _READINGS.get(wanted)
    if reading is None:
        return cast("_Parsed", wanted).parse(node.text)
    if not node.plain:
        raise ValueError(f"expected {describe_expectation(wanted)} without quotes")
    return reading(node.text)


class _Parsed(Protocol):
    """A class that makes its instances of text."""

    def parse(self, text: str) -> object:
        """The instance for ``text``; ValueError if there is none."""


class _Quantity(Protocol):
    """A class that makes its instances of text and a dimension."""

    def parse(self, text: str, dimension: Dimension) -> object:
        """The instance for ``text``; ValueError if there is none."""


def _parse_literal(text: str, known: tuple[object, ...]) -> object:
    by_text = {str(value): value for value in known}
    if text not in by_text:
        raise ValueError(f"expected one of {scalars.format_list(by_text)}{scalars.suggest_word(text, by_text)}")
    return by_text[text]
