"""Records as JSON and back, by their annotations: for what crosses a process or a year in a database.

Never more than data: what comes back is built from the annotated records only, and checked against them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from advisor.support import contract
from advisor.support.contract import ContractError

T = TypeVar("T")
Json = Any
Build = Callable[[Any], Any]
_PLAIN: Final = frozenset((str, int, float, bool, NoneType))


def pack_record(value: object) -> Json:
    """Return ``value``, a record or part of one, as what JSON can hold (NaN as Python's ``json`` writes it)."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    names = _field_names(cast("Hashable", kind))
    if names is not None:
        return {name: pack_record(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"shape": list(value.shape), "data": data}
    if isinstance(value, Mapping):
        return {str(key): pack_record(content) for key, content in value.items()}
    if isinstance(value, tuple | list):
        return [pack_record(content) for content in value]
    return value


def unpack_record(record: type[T], value: Json) -> T:
    """Return the record that ``pack_record`` wrote; raises ``ContractError`` for what it can't have written."""
    try:
        return contract.require_record(_make_builder(cast("Hashable", record))(value), record)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ContractError("", f"is no {record.__name__}: {error}") from error


@cache
def _field_names(kind: Hashable) -> tuple[str, ...] | None:
    """Return the names of the fields of a record, None for what is no record."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) and isinstance(kind, type) else None


@cache
def _make_builder(hint: Hashable) -> Build:
    """Return what makes a value of that annotation from JSON; whether it is one is checked at the end."""
    hint = contract.resolve_alias(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _union_builder(get_args(hint))
    if origin is tuple:
        return _tuple_builder(get_args(hint))
    if origin is np.ndarray:
        return _array_builder(get_args(get_args(hint)[1])[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key_hint, build = get_args(hint)[0], _make_builder(get_args(hint)[1])
        build_key = int if key_hint is int else _keep_value  # JSON has no keys but text
        return lambda value: {build_key(key): build(item) for key, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return _record_builder(hint)
    return _convert_number if hint is float else _keep_value


def _record_builder(record: type) -> Build:
    """Return what builds a record; fields that it got after the value was written have their default."""

    def build_record(value: Json) -> object:
        held = {
            name: build_record(value[name])
            for name, build_record, has_default in _field_builders(record)
            if not has_default or name in value
        }
        return record(**held)

    return build_record


@cache
def _field_builders(record: type) -> tuple[tuple[str, Build, bool], ...]:
    """Return a record's fields, the builder of each, and whether it has a default; lazily, since records may nest."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(
        (
            field.name,
            _make_builder(hints[field.name]),
            field.default is not MISSING or field.default_factory is not MISSING,
        )
        for field in fields(record)
    )


def _tuple_builder(hints: tuple[Any, ...]) -> Build:
    if hints[-1:] == (Ellipsis,):
        each = _make_builder(hints[0])
        return lambda value: tuple([each(item) for item in value])
    builders = [_make_builder(hint) for hint in hints]
    return lambda value: tuple([build(item) for build, item in zip(builders, value, strict=True)])


def _array_builder(scalar: type) -> Build:
    def build_array(value: Json) -> object:
        return np.frombuffer(base64.b64decode(value["data"]), dtype=scalar).reshape(value["shape"])

    return build_array


def _union_builder(hints: tuple[Any, ...]) -> Build:
    """Return what builds the first of the hints that takes a value."""
    rest = tuple(hint for hint in hints if hint is not NoneType)
    if len(rest) == 1 and len(hints) == 2:
        only = _make_builder(rest[0])
        return lambda value: None if value is None else only(value)

    def build_first_fitting(value: Json) -> object:
        for hint in hints:
            try:
                built = _make_builder(hint)(value)
                contract.check_value(built, hint)
            except (KeyError, TypeError, ValueError, AttributeError, ContractError):
                continue
            return built
        raise ContractError("", f"{str(value)[:80]!r} is none of {hints}")

    return build_first_fitting


def _convert_number(value: Json) -> object:
    return float(value) if type(value) is int else value


def _keep_value(value: Json) -> object:
    return value
