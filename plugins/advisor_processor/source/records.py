"""What the source of a program consists of: functions, loops, and blocks that run as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Reference:
    """An access to an array: its name, its subscripts as written, the bytes of an element, read or written."""

    array: str
    subscripts: tuple[str, ...]
    size: int
    write: bool
    floating: bool = True


@dataclass(slots=True)
class Work:
    """Operations on floating-point numbers by unit, accesses to memory, and calls, in the order of the source."""

    operations: dict[str, int] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def add_operations(self, unit: str, times: int = 1) -> None:
        """Add a number of operations of a unit."""
        self.operations[unit] = self.operations.get(unit, 0) + times


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment to a scalar, both as written; the value is empty if only a run determines it."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call, its arguments as written; ``is_function`` where Fortran uses its value, and it changes no argument.

    ``line`` is that of its statement, 0 where it is that of its block.
    """

    name: str
    arguments: tuple[str, ...]
    is_function: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class LoopEntry:
    """A loop is reached."""

    loop: Loop


@dataclass(frozen=True, slots=True)
class Branch:
    """At most one of several blocks runs: the first whose condition holds; None if only a run determines it."""

    clauses: tuple[tuple[str | None, Block], ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """A loop, one iteration of it, or the function is left."""

    kind: Literal["break", "continue", "return"]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Rest:
    """Where what stands before has not left, the rest of the block runs."""

    block: Block


Statement = Assignment | CallSite | LoopEntry | Branch | Leave | Rest


@dataclass(slots=True)
class Block:
    """Statements that run one after the other whenever the block is entered, as counted by counter ``number``.

    ``loop`` is the innermost loop around it; ``parent`` the block that it is a branch of.
    """

    number: int
    function: str
    line: int
    loop: Loop | None
    parent: Block | None
    work: Work = field(default_factory=Work)
    branch: bool = False
    statements: list[Statement] = field(default_factory=list)


@dataclass(slots=True)
class Loop:
    """A loop with its variable and the expressions it is controlled by, as written; empty where there are none.

    ``block`` is where it stands, ``body`` what it repeats. ``comparison`` is ``<``, ``<=`` and so on; ``step`` an
    expression, negative where the loop counts down. ``symbols`` are the names whose values decide how often it runs,
    ``changed`` those that it assigns.
    """

    number: int
    function: str
    line: int
    kind: str
    variable: str
    initial: str
    comparison: str
    final: str
    step: str
    block: Block
    body: Block | None = None
    symbols: tuple[str, ...] = ()
    changed: frozenset[str] = frozenset()
    inner: bool = False

    @property
    def name(self) -> str:
        """``function:line``."""
        return f"{self.function}:{self.line}"


@dataclass(slots=True)
class Insertion:
    """A text to insert before a byte of the file; of several at one place the one with the lowest ``order`` first.

    It takes the place of ``removed`` bytes.
    """

    offset: int
    text: str
    order: int = 0
    removed: int = 0


@dataclass(slots=True)
class Source:
    """One file: its blocks and loops by number, the parameters of its functions, and what to insert.

    ``entries`` are the first blocks of its functions, ``declared`` the names that these declare; ``values`` what names
    of the whole file start with, ``macros`` with their parameters, ``sizes`` bytes of an element by function and name.
    ``results`` are integers that calls set, by function and name, whose values are noted behind the calls.
    """

    file: str
    language: str
    blocks: list[Block] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    insertions: list[Insertion] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    entries: dict[str, Block] = field(default_factory=dict)
    declared: dict[str, frozenset[str]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    macros: dict[str, tuple[tuple[str, ...] | None, str]] = field(default_factory=dict)
    sizes: dict[tuple[str, str], int] = field(default_factory=dict)
    results: list[tuple[str, str]] = field(default_factory=list)

    @property
    def noted_names(self) -> list[tuple[str, str]]:
        """Names whose values a run notes, by function: those that control loops, then what calls set."""
        return [(loop.function, symbol) for loop in self.loops for symbol in loop.symbols] + self.results
