"""How often a loop repeats its body each time it is reached, and what its variable is in each turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sympy

from advisor_processor.symbolic.integer_functions import Doublings, Quotient

if TYPE_CHECKING:
    from advisor_processor.source.records import Loop

_DOWN: Final = (">", ">=")


@dataclass(frozen=True, slots=True)
class Trips:
    """How often a loop repeats, and ``value(turn)`` of its variable."""

    times: Any
    value: Callable[[Any], Any]


def find_trips(
    loop: Loop, parse: Callable[[str], Any], positive_part: Callable[[Any], Any], changed: Set[str]
) -> Trips | None:  # fmt: skip
    """Return the trips of a loop; None if its control, or what its body changes, does not determine them."""
    if not loop.variable or (loop.kind != "do" and _names(loop.final + " " + loop.step) & set(changed)):
        return None
    first, last = parse(loop.initial), parse(loop.final)
    if first is None or last is None:
        return None
    if found := re.fullmatch(r"([*/])(\d+)", loop.step):
        return _find_geometric(found[1], int(found[2]), loop.comparison, first, last)
    step = parse(loop.step)
    if step is None or step == 0:
        return None
    down = bool(step.could_extract_minus_sign())
    if loop.comparison not in ((*_DOWN, "!=") if down else ("<", "<=", "!=")):
        return None
    inclusive = loop.comparison in ("<=", ">=")
    distance = (first - last if down else last - first) + int(inclusive)
    size = -step if down else step
    times = positive_part(distance if size == 1 else Quotient(distance + size - 1, size))
    return Trips(times, lambda turn: sympy.expand(first + turn * step))


def _find_geometric(kind: str, base: int, comparison: str, first: Any, last: Any) -> Trips | None:  # noqa: ANN401
    """Return the trips of a loop that doubles or halves its variable."""
    if base != 2:
        return None
    if kind == "*" and comparison in ("<", "<="):
        end = last + int(comparison == "<=")
        return Trips(Doublings(Quotient(end + first - 1, first)), lambda turn: first * 2**turn)
    if kind == "/" and comparison in _DOWN:
        least = last + int(comparison == ">")
        return Trips(Doublings(Quotient(first, least) + 1), lambda turn: Quotient(first, 2**turn))
    return None


def _names(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", text))
