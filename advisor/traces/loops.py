"""Loops over the events of large traces, compiled by numba: what is a matter of order goes through them once.

Each gives what a function of plain numpy gives, which is named there and used for small traces and without numba.
Importing this module imports numba.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from advisor.compiling import keep_compiled
from advisor.traces.events import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.model import IntArray

Bools = npt.NDArray[np.bool_]
Function = TypeVar("Function", bound="Callable[..., Any]")

_ENTER: Final = int(Kind.ENTER)
_LEAVE: Final = int(Kind.LEAVE)

keep_compiled()  # before numba is imported, which looks for its folder then
_jit: Callable[[Function], Function] = import_module("numba").njit(
    cache="NUMBA_CACHE_DIR" in os.environ, error_model="numpy"
)


@_jit
def nested(
    first: IntArray,
    kind: npt.NDArray[np.uint8],
    region: npt.NDArray[np.int32],
    claims: Bools,
    marks: Bools,
    open_after: IntArray,
    calls: IntArray,
    threaded: Bools,
) -> None:
    """Fill ``open_after`` (events,), ``calls`` (4, n) and ``threaded`` (n,) as ``nesting._nested_plainly`` does.

    The rows of ``calls`` are enter, leave, parent and anchor; calls of regions that ``claims`` claim the time of their
    callees, and those of regions that ``marks`` are parallel regions of threads.
    """
    enter, leave, parent, anchor = calls
    call = 0
    for location in range(len(first) - 1):
        top = -1
        for event in range(first[location], first[location + 1]):
            if kind[event] == _ENTER:
                name = region[event]
                enter[call], leave[call], parent[call] = event, -1, top
                above = anchor[top] if top >= 0 else -1
                anchor[call] = call if above < 0 and claims[name] else above
                threaded[call] = marks[name] or (top >= 0 and threaded[top])
                top = call
                call += 1
            elif kind[event] == _LEAVE and top >= 0:
                leave[top] = event
                top = parent[top]
            open_after[event] = top
