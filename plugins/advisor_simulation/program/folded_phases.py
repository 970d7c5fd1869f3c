"""What the accesses of a phase are folded into: steps, loops and references whose places are formulas."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor_simulation.program.fitting import LinearForm

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray
    from advisor_simulation.program.event_location import LocatedEvents


@dataclass(frozen=True, slots=True)
class RaggedList:
    """Whole numbers by domain index: those of index i are ``values[first[i]:first[i + 1]]``."""

    first: IntArray
    values: IntArray


Formula = LinearForm | RaggedList


@dataclass(frozen=True, slots=True)
class FoldedReference:
    """A reference of an instruction to an object: bytes of an access, and ``offset`` in the object, bytes.

    Formulas are of (domain index, inner indices …, processor). ``taken`` lists for each execution whether it is made,
    None where it always is.
    """

    data: int
    instruction: int
    size: int
    stores: bool
    offset: Formula
    count: int
    taken: Formula | None = None


@dataclass(frozen=True, slots=True)
class FoldedLoop:
    """An inner loop: its number, how often it runs (``most`` at most), and what is in it."""

    loop: int
    times: Formula
    most: int
    body: tuple[FoldedItem, ...]


FoldedItem = FoldedReference | FoldedLoop


@dataclass(frozen=True, slots=True)
class FoldedStep:
    """A loop over a domain: the ``owner`` of each index, instructions by index, and references in program order.

    ``recovered`` where indices are those of the loop, found from who touches what; else they are the processors. Where
    two loops were made one, ``split`` is how often the inner one runs, and formulas are of the index, the index divided
    by that, inner indices and the processor; else 0.
    """

    loop: int
    owner: IntArray
    weight: FloatArray
    body: tuple[FoldedItem, ...]
    recovered: bool
    split: int = 0

    @property
    def most(self) -> tuple[int, ...]:
        """How many values each of the outermost variables of formulas takes."""
        size = len(self.owner)
        return (size, -(-size // self.split)) if self.split else (size,)


@dataclass(slots=True)
class FoldedPhase:
    """The steps of a phase in order, its accesses, and how many of them are to no known object."""

    steps: list[FoldedStep] = field(default_factory=list)
    accesses: int = 0
    unplaced: int = 0


@dataclass(frozen=True, slots=True)
class PlacedEvents:
    """Accesses of one processor with the object of each (``data``, -1 for none) and the ``offset`` in it, bytes."""

    located: LocatedEvents
    data: IntArray
    offset: IntArray
    begin_count: int
    end_count: int
