"""The innermost loops of a function, and how often each was entered and went round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor_processor.compiled.instructions import Instruction


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions from the target of a backward jump to that jump, without another loop inside."""

    body: tuple[Instruction, ...]

    @property
    def begin(self) -> int:
        """The address of the first instruction."""
        return self.body[0].address

    @property
    def end(self) -> int:
        """The address behind the last instruction."""
        return self.body[-1].end


@dataclass(frozen=True, slots=True)
class TripCounts:
    """How often a loop went round, and how often it was entered."""

    iterations: float
    entries: float


def find_innermost_loops(instructions: Sequence[Instruction]) -> tuple[Loop, ...]:
    """Return the innermost loops of a function, in the order of their addresses.

    A jump back over a return is none: code that is seldom run lies behind the function and jumps back into it.
    """
    first = instructions[0].address if instructions else 0
    backward = ((one.target, one.end) for one in instructions if one.target is not None and one.target <= one.address)
    spans = sorted({(begin, end) for begin, end in backward if begin >= first})
    inner = [
        span
        for span in spans
        if not any(span != other and span[0] <= other[0] and other[1] <= span[1] for other in spans)
    ]
    bodies = [tuple(one for one in instructions if begin <= one.address < end) for begin, end in inner]
    return tuple(
        Loop(body)
        for body, (begin, _) in zip(bodies, inner, strict=True)
        if body[0].address == begin and not any(one.returns for one in body)
    )


def count_trips(loop: Loop, executed: Mapping[int, float]) -> TripCounts:
    """Return how often a loop ran, from how often each instruction was executed.

    It was left as often as the instruction behind it ran at most; where that is not known, once.
    """
    iterations = max(executed.get(loop.begin, 0.0), 0.0)
    left = executed.get(loop.end, 0.0)
    return TripCounts(iterations, min(max(left, 1.0), iterations) if iterations else 0.0)


def select_unconditional(loop: Loop, executed: Mapping[int, float] | None) -> tuple[Instruction, ...]:
    """Return the instructions that run in every iteration, all of them where executions are not known."""
    if not executed:
        return loop.body
    rounds = executed.get(loop.begin, 0.0)
    return tuple(one for one in loop.body if executed.get(one.address, 0.0) >= rounds)
