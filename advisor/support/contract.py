"""Checks whether a value keeps the promise of its record's annotations; applied to all that plugins return.

The annotations themselves are the contract: strings and tuples of bounded size, finite numbers, arrays of the stated
type, literals, mappings and nested records. Plain Python integers and strings only, so that every result can be
written as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from advisor.model.errors import PluginError

TEXT_LIMIT: Final = 100_000  # characters
ITEMS_LIMIT: Final = 1_000_000

T = TypeVar("T")
Checker = Callable[[object, str], None]


class ContractError(PluginError):
    """A value that is not what was promised: ``place`` is a path into it, ``reason`` what is wrong there.

    ``expected`` names the type where the value is of another.
    """

    def __init__(self, place: str, reason: str, expected: str | None = None) -> None:
        self.expected = expected
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}" if place else reason)


def check_value(value: object, hint: object, place: str = "") -> None:
    """Raise ``ContractError`` where ``value`` is not of the annotated type ``hint``."""
    _build_checker(hint)(value, place)


def require_record(value: object, record: type[T], place: str = "") -> T:
    """Return ``value``, which is a ``record`` through and through; raises ``ContractError``."""
    check_value(value, record, place)
    return cast("T", value)


def resolve_alias(hint: object) -> object:
    """Return the annotation behind a ``type`` alias (PEP 695), ``hint`` itself if it is none.

    NumPy spells ``NDArray`` as a plain generic alias up to 2.4 and as such a type alias from 2.5 on; whoever looks at
    origins and arguments of annotations must not see the difference. Parameters are filled in: ``NDArray[float64]``
    becomes ``ndarray[tuple[Any, ...], dtype[float64]]``.
    """
    alias = get_origin(hint) or hint
    while type(alias).__name__ == "TypeAliasType":  # a class of typing's from Python 3.12 on
        arguments = get_args(hint)
        hint = cast("Any", alias).__value__
        hint = cast("Any", hint)[arguments] if arguments else hint
        alias = get_origin(hint) or hint
    return hint


@cache
def _build_checker(hint: object) -> Checker:
    """Return the function that checks values against one annotation; made once for each."""
    hint = resolve_alias(hint)
    origin = get_origin(hint)
    if origin in (UnionType, Union):
        return _union_checker(get_args(hint))
    if origin is Literal:
        return _choice_checker(get_args(hint))
    if origin is Annotated:
        return _check_number_or_nan
    if origin is tuple:
        return _tuple_checker(get_args(hint))
    if origin is np.ndarray:
        return _array_checker(get_args(get_args(hint)[1])[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_checker(*get_args(hint))
    if isinstance(hint, type) and is_dataclass(hint):
        return _record_checker(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    expected = hint if isinstance(hint, type) else origin or object

    def check_instance(value: object, place: str) -> None:
        if not isinstance(value, expected):
            raise _type_error(place, expected.__name__, value)

    return check_instance


def _type_error(place: str, expected: str, value: object) -> ContractError:
    return ContractError(place, f"expected {expected}, found {type(value).__name__}", expected)


def _check_text(value: object, place: str) -> None:
    if not isinstance(value, str):
        raise _type_error(place, "a string", value)
    if len(value) > TEXT_LIMIT:
        raise ContractError(place, f"a string of {len(value):,} characters; at most {TEXT_LIMIT:,} are allowed")


def _check_whole(value: object, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _type_error(place, "an integer", value)


def _check_number(value: object, place: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _type_error(place, "a number", value)
    if not math.isfinite(value):
        raise ContractError(place, f"expected a finite number, found {value}")


def _check_number_or_nan(value: object, place: str) -> None:
    if not (isinstance(value, float) and math.isnan(value)):
        _check_number(value, place)


def _check_flag(value: object, place: str) -> None:
    if not isinstance(value, bool):
        raise _type_error(place, "True or False", value)


def _check_none(value: object, place: str) -> None:
    if value is not None:
        raise _type_error(place, "None", value)


_SCALARS: Final[dict[object, Checker]] = {
    str: _check_text,
    int: _check_whole,
    float: _check_number,
    bool: _check_flag,
    type(None): _check_none,
}


def _choice_checker(choices: tuple[object, ...]) -> Checker:
    def check_choice(value: object, place: str) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise ContractError(place, f"expected one of {', '.join(map(str, choices))}, found {str(value)[:80]}")

    return check_choice


def _union_checker(hints: tuple[object, ...]) -> Checker:
    # What has exactly the type of one of the hints is asked there first: nearly every value has.
    own = {hint: _build_checker(hint) for hint in hints}
    checkers = tuple(own.values())

    def check_union(value: object, place: str) -> None:
        errors = []
        first = own.get(type(value))
        for one in checkers if first is None else (first, *checkers):
            try:
                one(value, place)
            except ContractError as error:
                errors.append(error)
            else:
                return
        nearest = [error for error in errors if error.place != place or error.expected is None]
        if nearest:
            raise nearest[0]
        raise _type_error(place, " or ".join(error.expected or "" for error in errors), value)

    return check_union


def _tuple_checker(hints: tuple[object, ...]) -> Checker:
    variadic = hints[-1] is Ellipsis
    checkers = [_build_checker(hint) for hint in hints if hint is not Ellipsis]

    def check_tuple(value: object, place: str) -> None:
        if not isinstance(value, tuple):
            raise _type_error(place, "a tuple", value)
        if len(value) > ITEMS_LIMIT or not (variadic or len(value) == len(checkers)):
            raise ContractError(place, f"a tuple of {len(value):,} values is too long or too short")
        for i, item in enumerate(value):
            checkers[0 if variadic else i](item, f"{place}[{i}]")

    return check_tuple


def _mapping_checker(key_hint: object, value_hint: object) -> Checker:
    key_checker, value_checker = _build_checker(key_hint), _build_checker(value_hint)

    def check_mapping(value: object, place: str) -> None:
        if not isinstance(value, Mapping):
            raise _type_error(place, "a mapping", value)
        if len(value) > ITEMS_LIMIT:
            raise ContractError(place, f"a mapping of {len(value):,} values is too long")
        for key, item in value.items():
            key_checker(key, f"{place}, a key")
            value_checker(item, f"{place}.{str(key)[:80]}")

    return check_mapping


def _array_checker(scalar: type[np.generic]) -> Checker:
    def check_array(value: object, place: str) -> None:
        if not isinstance(value, np.ndarray):
            raise _type_error(place, "an array", value)
        if value.dtype != scalar:
            raise ContractError(place, f"expected an array of {scalar.__name__}, found {str(value.dtype)[:80]}")
        if issubclass(scalar, np.floating):
            with np.errstate(all="ignore"):
                total = value.sum()  # one pass without a copy: not finite if any value is not
            if not np.isfinite(total):
                raise ContractError(place, "not all values are finite numbers")

    return check_array


def _record_checker(record: type) -> Checker:
    hints = get_type_hints(record, include_extras=True)
    checkers = [(field.name, _build_checker(hints[field.name])) for field in fields(record)]

    def check_record(value: object, place: str) -> None:
        if not isinstance(value, record):
            raise _type_error(place, record.__name__, value)
        prefix = f"{place}." if place else ""
        for name, one in checkers:
            one(getattr(value, name), prefix + name)

    return check_record
