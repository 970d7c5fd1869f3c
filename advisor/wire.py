"""Records as JSON and back, by their annotations: for what crosses a process or a year in a database.

Never more than data: what comes back is built from the annotated records only, and checked against them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from advisor import contract
from advisor.contract import ContractError

T = TypeVar("T")
Json = Any


def pack(value: object) -> Json:
    """Return ``value``, a record or part of one, as what JSON can hold (NaN as Python's ``json`` writes it)."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: pack(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"shape": list(value.shape), "data": data}
    if isinstance(value, Mapping):
        return {str(key): pack(content) for key, content in value.items()}
    if isinstance(value, tuple | list):
        return [pack(content) for content in value]
    return value


def unpack(record: type[T], value: Json) -> T:
    """Return the record that ``pack`` wrote; raises ``ContractError`` for what it can't have written."""
    try:
        return contract.checked(_built(record, value), record)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ContractError("", f"is no {record.__name__}: {error}") from error


def _built(hint: Any, value: Json) -> Any:  # noqa: ANN401 - annotations are data here
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _one_of(get_args(hint), value)
    if origin is tuple:
        items = get_args(hint)
        kinds = [items[0]] * len(value) if items[-1:] == (Ellipsis,) else items
        return tuple(_built(kind, item) for kind, item in zip(kinds, value, strict=True))
    if origin is np.ndarray:
        scalar = get_args(get_args(hint)[1])[0]
        return np.frombuffer(base64.b64decode(value["data"]), dtype=scalar).reshape(value["shape"])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _built(get_args(hint)[1], item) for key, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return hint(**{name: _built(kind, value[name]) for name, kind in _hints(hint)})
    return value if origin in (Literal, Annotated) else _scalar(hint, value)


@cache
def _hints(record: type) -> tuple[tuple[str, Any], ...]:
    """Return the names and annotations of a record's fields."""
    hints = get_type_hints(record, include_extras=True)
    return tuple((field.name, hints[field.name]) for field in fields(record))


def _scalar(hint: Any, value: Json) -> Any:  # noqa: ANN401
    return float(value) if hint is float and isinstance(value, int) and not isinstance(value, bool) else value


def _one_of(hints: tuple[Any, ...], value: Json) -> Any:  # noqa: ANN401
    """Return the value as the first of the hints that takes it."""
    for hint in hints:
        try:
            built = _built(hint, value)
            contract.check(built, hint)
        except (KeyError, TypeError, ValueError, ContractError):
            continue
        return built
    raise ContractError("", f"{str(value)[:80]!r} is none of {hints}")
