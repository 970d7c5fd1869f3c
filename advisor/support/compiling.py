"""Code that numba compiles: whether it pays, how, and where it is kept; standard library only, numba where needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from advisor.support.disk_cache import user_folder

Function = TypeVar("Function", bound="Callable[..., Any]")


def set_compile_cache() -> None:
    """Let numba keep what it compiles in the user's cache folder, where that can be written."""
    folder = user_folder("XDG_CACHE_HOME", "~/.cache") / "numba"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))


def is_worth_compiling(size: int, *, loading: int, compiling: int) -> bool:
    """Return whether a task of ``size`` is worth compiled code, and numba is there.

    From ``loading`` on that takes less time than it saves where compiled code is kept, from ``compiling`` on where it
    is compiled in every run, since there is no place to keep it.
    """
    if size < loading or find_spec("numba") is None:
        return False
    set_compile_cache()
    return size >= (loading if "NUMBA_CACHE_DIR" in os.environ else compiling)


def jit(*, allocating: bool, inlined: bool = False, without_gil: bool = False) -> Callable[[Function], Function]:
    """Return what compiles a loop over arrays, which imports numba.

    A loop that is not ``allocating`` makes no arrays, so that it needs no count of who holds one; ``inlined`` ones
    become part of the loops that call them; those ``without_gil`` let other threads run Python meanwhile.
    """
    set_compile_cache()  # before numba is imported, which looks for its folder then
    options = ({} if allocating else {"_nrt": False}) | ({"forceinline": True} if inlined else {})
    options |= {"nogil": True} if without_gil else {}
    compiler: Callable[[Function], Function] = import_module("numba").njit(
        cache="NUMBA_CACHE_DIR" in os.environ, error_model="numpy", **options
    )
    return compiler
