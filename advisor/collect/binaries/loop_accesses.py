"""How a loop of machine code goes through memory (x86-64): along it, in steps, by indices, back to what it wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.integer_loops import LARGEST_B
from advisor.collect.binaries.loop_nests import LoopNest, is_transposition
from advisor.collect.binaries.memory_accesses import (
    Access,
    is_interleaved,
    is_on_stack,
    is_sparse,
    name_origins,
    place_at_start,
    read_access,
    step_of,
)
from advisor.collect.binaries.registers import find_step_places

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: The registers and displacement of an address, and how registers change and are written in an iteration.
Terms = tuple[tuple[str, int], ...]
Steps = tuple["Mapping[str, int | str]", "Mapping[str, int]"]
#: Numbers this many bytes apart fall into few sets of the first cache: a power of two, or a multiple of a page.
_PAGE_B: Final = 4096
#: What the last so many iterations have computed does not come in one vector.
_NEAREST: Final = 3


def find_accesses(body: Sequence[Instruction], steps: Mapping[str, int | str]) -> dict[int, Access]:
    """Return what the instructions of a loop access outside of the own frame, by their numbers."""
    places = find_step_places(body, steps)
    return {
        at: name_origins(body, at, place_at_start(found, at, steps, places), steps)
        for at, one in enumerate(body)
        if (found := read_access(one)) is not None and not is_on_stack(one)
    }


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """How a loop goes through memory, in accesses, and whether one reads what an earlier iteration wrote.

    ``leaps`` are the constant steps of those that are strided, with their number.
    """

    strided: int = 0
    far: int = 0
    indexed: int = 0
    fixed: int = 0
    interleaved: int = 0
    unshaped: int = 0
    reads_back: bool = False
    leaps: tuple[tuple[int, int], ...] = ()


def count_accesses(
    groups: Mapping[tuple[Terms, int | str | None], Sequence[Access]], rows: Collection[Terms], coded: Steps
) -> AccessCounts:
    """Return the counts of accesses by terms and step; ``coded`` are the steps that the code itself tells."""
    counts: Counter[str] = Counter()
    reads_back, leaps = False, Counter[int]()
    for (terms, step), members in groups.items():
        reads_back |= isinstance(step, int) and _reads_back(members, step)
        if step is None:
            counts["strided" if terms in rows else "indexed"] += len(members)
        elif step == 0:
            counts["fixed"] += sum(1 for member in members if member.writes and terms)
        elif isinstance(step, int) and is_interleaved(members, step):
            counts["interleaved"] += len(members)
        elif is_sparse(members, step):
            counts["strided"] += len(members)
            leaps[abs(step) if isinstance(step, int) else 0] += len(members)
            counts["far"] += len(members) if not isinstance(step, str) and step % _PAGE_B == 0 else 0
        elif isinstance(step_of(terms, *coded), str):
            counts["unshaped"] += len(members)
    return AccessCounts(**counts, reads_back=reads_back, leaps=tuple((step, n) for step, n in leaps.items() if step))


def transposes_operand(nest: LoopNest, operands: Iterable[Terms], rows: Collection[Terms], inner: Steps) -> bool:
    """Return whether an interchange would make another operand strided; ``rows`` are those that go from row to row."""
    inside: dict[int, int | str | None] = {}
    outside: dict[int, int | str | None] = {}
    for number, terms in enumerate(operands):
        inside[number] = "row" if terms in rows else step_of(terms, *inner)
        stays = tuple(term for term in terms if term[0] not in inner[1]) if terms in rows else terms
        outside[number] = nest.step_of(stays)
        if rows and outside[number] is None:
            outside[number] = "row"  # of other operands, the outer loop loads where the next row is
    return is_transposition(inside, outside)


def find_unit_strides(
    body: Sequence[Instruction], steps: Mapping[str, int | str], writes: Mapping[str, int]
) -> frozenset[int]:
    """Return the addresses of instructions that access the next small number of an array in each iteration."""
    found = set()
    for one in body:
        access = None if is_on_stack(one) else read_access(one)
        step = None if access is None else step_of(access.terms, steps, writes)
        if access is not None and isinstance(step, int) and step and access.size <= LARGEST_B:
            found.add(one.address)
    return frozenset(found)


def _reads_back(members: Sequence[Access], step: int) -> bool:
    """Return whether an iteration reads what one of the last ones has written, ``step`` bytes further back each."""
    written = {each.displacement for each in members if each.writes}
    read = {each.displacement for each in members if each.reads}
    return any(place - back * step in read for place in written for back in range(1, _NEAREST + 1) if step)
