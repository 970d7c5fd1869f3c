"""What profiles of call stacks come down to: stacks of functions, and what was spent with each on top."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from advisor.model.records import Note


class Frame(NamedTuple):
    """A function on a stack, with the file and the line that it begins at, where they are known."""

    name: str
    file: str | None = None
    line: int | None = None


#: What is spent with each stack, outermost function first, on each thread: time passed, CPU time, or samples.
Unit = Literal["wall_s", "cpu_s", "samples"]


@dataclass(frozen=True, slots=True)
class StackProfile:
    """The stacks of one process.

    ``spent`` maps a stack to what each of its ``threads`` spent with it on top, in ``unit``; ``calls`` how often the
    function on top was entered, and ``made`` how many calls it made, where these were counted. ``wall_s`` is the wall
    time of the run, NaN where it is not known. ``sampled`` is whether times are estimates from samples. ``kinds`` is
    what the profiler tells of the code of functions (name, file, line): whether it is interpreted. ``compiled_s`` is
    for how long functions were compiled while the program ran, all that the compiler calls included.
    """

    tool: str
    unit: Unit
    spent: dict[tuple[Frame, ...], list[float]]
    wall_s: float
    threads: int = 1
    sampled: bool = True
    program: str = ""
    started: str | None = None
    language: str | None = None
    calls: dict[tuple[Frame, ...], float] = field(default_factory=dict)
    made: dict[tuple[Frame, ...], float] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    kinds: dict[tuple[str, str | None, int | None], str] = field(default_factory=dict)
    compiled_s: float = 0.0

    def add_spent(self, stack: tuple[Frame, ...], thread: int, amount: float) -> None:
        """Add what a thread spent with ``stack``."""
        self.spent.setdefault(stack, [0.0] * self.threads)[thread] += amount
