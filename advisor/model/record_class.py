"""Dataclasses that are quick to define: every command defines some two hundred, and uses a part of them.

Python's own decorator writes and compiles six functions for each class, a third of what a short command takes. Here
the methods that all records share are written once, and ``__init__`` is compiled when the first record is made.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
    from typing import Any

__all__ = ["dataclass"]


def _define_record(*, slots: bool, frozen: bool = False) -> Callable[[type[Any]], type[Any]]:
    """Return what makes of a class what ``dataclasses.dataclass`` would, with ``slots``."""
    assert slots

    def make_record(plain: type[Any]) -> type[Any]:
        own = frozenset(vars(plain))
        plain.__doc__ = plain.__doc__ or plain.__name__  # else it would be the signature, which takes long to tell
        made: type[Any] = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
        fields = dataclasses.fields(made)
        methods = {"__init__": _late_init(made, fields), "__repr__": _make_repr(fields), **_comparing(fields, frozen)}
        if frozen:
            made.__dataclass_params__.frozen = True
            methods |= _freezing(fields)
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        return made

    return make_record


def _late_init(made: type[Any], fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Return an ``__init__`` that compiles the real one, puts it in its place, and calls it."""

    def __init__(self: object, *args: object, **named: object) -> None:
        made.__init__ = _compile_init(made, fields)
        made.__init__(self, *args, **named)

    return __init__


def _compile_init(made: type[Any], fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Return the ``__init__`` that assigns each field; fields of frozen records are set past ``__setattr__``."""
    names: dict[str, Any] = {"_missing": dataclasses.MISSING}
    arguments, body = ["self"], []
    for field in fields:
        name = value = field.name
        argument = [name]
        if field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            argument = [f"{name}=_default_{name}"]
            value = name if field.init else f"_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            argument = [f"{name}=_missing"]
            value = f"_make_{name}() if {name} is _missing else {name}" if field.init else f"_make_{name}()"
        elif not field.init:
            continue  # whoever makes the record sets it afterwards
        arguments += argument if field.init else []
        names[f"_set_{name}"] = getattr(made, name).__set__
        body.append(f"_set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(body or ["pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


def _values_of(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _make_repr(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[object], str]:
    names = [field.name for field in fields if field.repr]

    @recursive_repr("...")
    def __repr__(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return __repr__


def _comparing(fields: tuple[dataclasses.Field[Any], ...], frozen: bool) -> dict[str, Any]:
    values = _values_of([field.name for field in fields if field.compare])

    def __eq__(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: object) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _freezing(fields: tuple[dataclasses.Field[Any], ...]) -> dict[str, Any]:
    names = [field.name for field in fields]

    def __setattr__(self: object, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self: object, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self: object) -> list[object]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: object, state: list[object]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {
        "__setattr__": __setattr__, "__delattr__": __delattr__,
        "__getstate__": __getstate__, "__setstate__": __setstate__,
    }  # fmt: skip


if not TYPE_CHECKING:  # type checkers know what dataclasses are
    dataclass = _define_record
