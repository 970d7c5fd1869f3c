"""The state of a walk through a program: frames of functions with variables, calls, and values that only runs give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sympy

from advisor_processor.symbolic.integer_functions import IntegerFunction

#: The ranks of a program, and one of them.
RANKS: Final = sympy.Symbol("P", integer=True, positive=True)
RANK: Final = sympy.Symbol("rank", integer=True, nonnegative=True)
#: A file by its place, and a block of it by its number.
Key = tuple[int, int]


class Memory(IntegerFunction):
    """The value of a non-null pointer to this many bytes."""

    nargs = 1
    is_positive = True


class TooLargeError(Exception):
    """A program has more contexts of calls than are walked."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """The meaning of a symbol that only a run determines: ``part`` executions per one of ``whole``."""

    part: Key
    whole: Key | None


@dataclass(frozen=True, slots=True)
class MeasuredValues:
    """Values from runs: ``shares`` of branches that were the same in all, the symbols of names with one value a run.

    ``holds`` says whether an integer was zero or more in every run.
    """

    arguments: int
    shares: Mapping[Key, int]
    singles: Mapping[tuple[int, str, str], str]
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call of a library: the formulas of its arguments, None where not known.

    ``sum_calls(x)`` is the sum of ``x`` over all times that it is made on a rank, ``is_nonnegative(x)`` 1 or 0 there.
    """

    name: str
    written: tuple[str, ...]
    arguments: tuple[Any, ...]
    place: str
    block: Key
    sum_calls: Callable[[Any], Any] = field(repr=False)
    is_nonnegative: Callable[[Any], Any] = field(repr=False)


@dataclass(slots=True)
class Frame:
    """A function that is walked: where it is, its variables, and the extents of its arrays."""

    source: int
    function: str
    variables: dict[str, Any] = field(default_factory=dict)
    extents: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    result: Any = None
    returned: bool = False


def merge_variables(ends: Sequence[tuple[Any, dict[str, Any]]]) -> dict[str, Any]:
    """Return the variables behind a branch: what all ends agree on, else the value by the condition of each."""
    if len(ends) == 1:
        return ends[0][1]
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for _, each in ends for name in each):
        held = [(share, each[name]) for share, each in ends if name in each]
        values = [value for _, value in held]
        if all(value == values[0] for value in values):
            merged[name] = values[0]
        elif (
            None in values
            or len(held) < len(ends)
            or any(share is None for share, _ in held)
            or any(isinstance(value, Memory) for value in values)
        ):
            merged[name] = None
        else:
            merged[name] = sympy.expand(sum(share * value for share, value in held))
    return merged
