"""Loops that numba compiles where that takes less time than it saves; without numba they run as they are."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, ParamSpec, TypeVar

from advisor.support import compiling

P = ParamSpec("P")
R = TypeVar("R")
#: Operations from which on compiled loops are loaded.
WORTH_COMPILING: Final = 100_000
#: Functions that compiled loops call.
_HELPERS: Final[list[Any]] = []
_DONE: Final[dict[str, Any]] = {}
#: Loops that allocate nothing need no count of who holds an array; counting took two thirds of their time.
_COUNTLESS: Final = {"_nrt": False}


def has_numba() -> bool:
    """Return whether numba is installed."""
    return find_spec("numba") is not None


def numba_helper(function: Callable[P, R]) -> Callable[P, R]:
    """Let compiled loops call ``function``, which stays what it is otherwise."""
    _HELPERS.append(function)
    return function


def compile_function(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` as numba compiles it, or itself where numba is not installed."""
    if not has_numba():
        return function
    key = f"{function.__module__}.{function.__qualname__}"
    compiling.set_compile_cache()
    while _HELPERS:
        import_module("numba.extending").register_jitable(**_COUNTLESS, forceinline=True)(_HELPERS.pop())
    if key not in _DONE:
        _DONE[key] = compiling.jit(allocating=False)(function)
    made: Callable[P, R] = _DONE[key]
    return made


def choose_compiled(function: Callable[P, R], operations: int) -> Callable[P, R]:
    """Return ``function``, compiled where that pays for this many operations."""
    return compile_function(function) if operations >= WORTH_COMPILING else function
