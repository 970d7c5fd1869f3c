"""Innermost loops of machine code (x86-64), and what holds each of them up: the reason why it is scalar, its strides.

A loop runs from the target of a backward jump to that jump. What is told here is read off the code; how often a loop
ran, it does not know.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from advisor.collect.binaries.derived_steps import derive_steps, estimate_trips
from advisor.collect.binaries.float_chains import ARITHMETIC, count_ordered_sums, has_recurrence
from advisor.collect.binaries.integer_loops import (
    LARGEST_B,
    find_packed_integers,
    find_scalar_integers,
    has_integer_recurrence,
)
from advisor.collect.binaries.load_chains import LoadChain, find_load_chain
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
from advisor.collect.binaries.registers import find_step_places, find_steps, find_writes, whole_register
from advisor.collect.binaries.sampled_addresses import read_constants, read_steps
from advisor.collect.binaries.search_loops import is_search

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.sampled_addresses import Registers

#: Why a loop works on one number at a time: it calls, needs what the iteration before computed, goes through indices
#: (then it waits for what they name), takes a few numbers of each object, keeps the order of a sum, branches on data,
#: or steps over numbers; ``overlap``: nothing of that, so the compiler was not asked, or feared overlapping arrays.
ScalarReason = Literal["call", "recurrence", "index", "objects", "order", "branch", "stride", "overlap"]

_X87: Final = re.compile(r"f(?:i?add|i?sub|i?mul|i?div|sqrt)[rp]{0,2}")
_SLOW: Final = re.compile(r"v?(?:div|sqrt)[sp][sd]|f(?:i?div|sqrt)[rp]{0,2}")
_DIVIDES: Final = re.compile(r"v?div[sp][sd]")
_Terms = tuple[tuple[str, int], ...]
_Steps = tuple["Mapping[str, int | str]", "Mapping[str, int]"]
#: An addition, a comparison and a jump, or less, compute nothing from numbers in memory.
_FEWEST: Final = 4
#: A jump back over more code than this is no innermost loop that anyone wrote.
_LONGEST: Final = 20_000
#: Numbers this many bytes apart fall into few sets of the first cache: a power of two, or a multiple of a page.
_PAGE_B: Final = 4096
#: In so few iterations vectors win nothing.
_FEW_TRIPS: Final = 6
#: A loop with this share of its samples in the loops that it holds, or less, spends its time around them …
_INSIDE: Final = 1 / 3
#: … if it has so many samples or more, and no more instructions than one can look over.
_FEWEST_SAMPLES: Final = 20
_LONGEST_AROUND: Final = 500
#: What the last so many iterations have computed does not come in one vector.
_NEAREST: Final = 3


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """What one innermost loop does in an iteration; counts are instructions. ``depth`` is 1 for a loop in no other.

    ``accesses`` are places outside of the own frame, of which ``strided`` are walked through in steps over numbers, or
    from row to row where an array of pointers holds the rows,
    ``far`` in steps of pages, and ``indexed`` at addresses that were loaded or computed anew. ``fixed_updates`` are
    stores to the same place in every iteration. ``recurs`` says that an iteration needs what one before it computed,
    other than as a term of a sum, be it the next random number. ``arithmetic`` are the addresses of
    instructions that compute, ``calls`` the targets of calls, None for one through a pointer. Of loops without
    floating-point arithmetic, ``integers`` and ``packed_integers`` are the instructions that compute with one integer
    of an array, or several, at a time.
    ``fixed_divisors`` are divisions by a value that stays the same in all iterations. ``load_chain`` says how an
    address depends on a load of the iteration before. ``transposes`` says that an interchange with the loop around it
    would only make another operand strided. ``around`` marks one that spends its time around the short loops in it,
    ``searches`` one that only looks for an element of an array. ``interleaved`` are accesses to a few numbers of each
    object of an array of objects. ``unshaped`` are those that go along memory,
    as samples show, though the code takes any step. ``trips`` is how many iterations it mostly has, None where samples
    don't tell.
    """

    begin: int
    end: int
    depth: int
    instructions: int
    scalar: int
    packed: int
    slow: int
    on_stack: int
    accesses: int
    strided: int
    far: int
    indexed: int
    fixed_updates: int
    locked: int
    branches: int
    ordered_sums: int
    recurs: bool
    calls: tuple[int | None, ...]
    arithmetic: tuple[int, ...]
    integers: int = 0
    packed_integers: int = 0
    fixed_divisors: int = 0
    load_chain: LoadChain | None = None
    transposes: bool = False
    around: bool = False
    searches: bool = False
    interleaved: int = 0
    unshaped: int = 0
    trips: int | None = None

    @property
    def is_vector(self) -> bool:
        """Whether most of what it computes is done with vectors."""
        return self.packed > self.scalar or self.packed_integers > self.integers

    @property
    def is_short(self) -> bool:
        """Whether it mostly ends before a vector of numbers and what is left over have been worth their beginning."""
        return self.trips is not None and self.trips <= _FEW_TRIPS

    @property
    def scalar_reason(self) -> ScalarReason | None:
        """Why the loop works on one number at a time, None where it has vectors or computes nothing.

        Of loops over integers only what vectors would help is told: most others search, sort or count.
        """
        if self.integers and not self.packed_integers:
            holds = self.calls or self.recurs or self.indexed or self.strided or self.branches or self.fixed_updates
            return None if holds or self.locked or self.is_short else "overlap"
        if not self.scalar or self.packed >= self.scalar:
            return None
        if self.instructions <= _FEWEST and not self.accesses:
            return None  # adds the same value until the sum is large enough
        if self.calls:
            return "call"
        if self.recurs:
            return "recurrence"
        if self.around:
            return "branch"
        if self.indexed:
            return "index"
        if self.is_short:
            return "branch" if self.branches else None
        if 2 * self.interleaved >= self.accesses > 0:
            return "objects"
        if self.ordered_sums:
            return "order"
        if self.branches:
            return "branch"
        return "stride" if self.strided else "overlap"


def find_inner_loops(
    code: Sequence[Instruction],
    sampled: Mapping[int, int] | None = None,
    registers: Mapping[int, Registers] | None = None,
) -> tuple[InnerLoop, ...]:
    """Return the innermost loops of a function, in the order of their addresses.

    Where samples by address show that a loop spends its time around the short ones in it, it counts instead of them.
    ``registers`` are what these held at some of the samples.
    """
    first = code[0].address if code else 0
    spans = {
        (one.target, one.address + one.size)
        for one in code
        if one.jumps and one.target is not None and first <= one.target <= one.address
    }
    ordered = sorted((span for span in spans if span[1] - span[0] <= _LONGEST), key=lambda span: span[1] - span[0])
    inner: list[tuple[int, int]] = []
    absorbed: set[tuple[int, int]] = set()
    for begin, end in ordered:
        within = [other for other in inner if begin <= other[0] and other[1] <= end]
        touched = [other for other in inner if begin < other[1] and other[0] < end]
        if sampled and within and touched == within and _spends_around(code, (begin, end), within, sampled):
            inner = [other for other in inner if not (begin <= other[0] and other[1] <= end)]
            absorbed.add((begin, end))
            within = []
        if not within:
            inner.append((begin, end))
    found = []
    for begin, end in sorted(inner):
        body = [one for one in code if begin <= one.address < end]
        if body and not any(one.mnemonic == "ret" for one in body):
            depth = len({other[0] for other in spans if other[0] <= begin and end <= other[1]})
            loop = _describe_loop(body, depth, _find_nest(code, spans, (begin, end)), registers or {})
            found.append(replace(loop, around=(begin, end) in absorbed))
    return tuple(found)


def _spends_around(
    code: Sequence[Instruction], span: tuple[int, int], within: Collection[tuple[int, int]], sampled: Mapping[int, int]
) -> bool:
    """Return whether a loop has most of its samples around the loops in it."""
    body = [one.address for one in code if span[0] <= one.address < span[1]]
    if len(body) > _LONGEST_AROUND:
        return False
    seen = sum(sampled.get(address, 0) for address in body)
    inside = sum(sampled.get(address, 0) for address in body if any(a <= address < b for a, b in within))
    return seen >= _FEWEST_SAMPLES and inside <= _INSIDE * seen


def count_arithmetic(code: Sequence[Instruction]) -> tuple[int, int, int]:
    """Return how many instructions compute with single numbers, with vectors, and divide or take roots."""
    scalar = packed = slow = 0
    for one in code:
        found = ARITHMETIC.fullmatch(one.mnemonic)
        if found is not None:
            scalar += found["width"] == "s"
            packed += found["width"] == "p"
        elif _X87.fullmatch(one.mnemonic):
            scalar += 1
        slow += bool(_SLOW.fullmatch(one.mnemonic))
    return scalar, packed, slow


def is_extended(one: Instruction) -> bool:
    """Return whether an instruction computes with the longer vectors and three operands of AVX, as later ones do."""
    return one.mnemonic.startswith("v") and ARITHMETIC.fullmatch(one.mnemonic) is not None


def is_arithmetic(one: Instruction) -> bool:
    """Return whether an instruction computes with floating-point numbers."""
    return bool(ARITHMETIC.fullmatch(one.mnemonic) or _X87.fullmatch(one.mnemonic))


def _find_nest(
    code: Sequence[Instruction], spans: Collection[tuple[int, int]], inner: tuple[int, int]
) -> LoopNest | None:
    """Return an inner loop with the next one around it, None for a loop in no other."""
    begin, end = inner
    around = [one for one in spans if one[0] <= begin and end <= one[1] and one[0] < begin]
    if not around:
        return None
    first, last = min(around, key=lambda span: span[1] - span[0])
    if last - first > _LONGEST:
        return None
    return LoopNest(
        [one for one in code if first <= one.address < begin],
        [one for one in code if begin <= one.address < end],
        [one for one in code if end <= one.address < last],
    )


def _transposes(nest: LoopNest, operands: Iterable[_Terms], rows: Collection[_Terms], inner: _Steps) -> bool:
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


def _find_accesses(body: Sequence[Instruction], steps: Mapping[str, int | str]) -> dict[int, Access]:
    """Return what the instructions of a loop access outside of the own frame, by their numbers."""
    places = find_step_places(body, steps)
    return {
        at: name_origins(body, at, place_at_start(found, at, steps, places), steps)
        for at, one in enumerate(body)
        if (found := read_access(one)) is not None and not is_on_stack(one)
    }


@dataclass(frozen=True, slots=True)
class _AccessCounts:
    """How a loop goes through memory, in accesses, and whether one reads what an earlier iteration wrote."""

    strided: int = 0
    far: int = 0
    indexed: int = 0
    fixed: int = 0
    interleaved: int = 0
    unshaped: int = 0
    reads_back: bool = False


def _count_accesses(
    groups: Mapping[tuple[_Terms, int | str | None], Sequence[Access]], rows: Collection[_Terms], coded: _Steps
) -> _AccessCounts:
    """Return the counts of accesses by terms and step; ``coded`` are the steps that the code itself tells."""
    counts: Counter[str] = Counter()
    reads_back = False
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
            counts["far"] += len(members) if not isinstance(step, str) and step % _PAGE_B == 0 else 0
        elif isinstance(step_of(terms, *coded), str):
            counts["unshaped"] += len(members)
    return _AccessCounts(**counts, reads_back=reads_back)


def _describe_loop(
    body: Sequence[Instruction], depth: int, nest: LoopNest | None, registers: Mapping[int, Registers]
) -> InnerLoop:
    writes = find_writes(body)
    constants = read_constants(body, writes, registers)
    coded = find_steps(body, writes)
    steps = read_steps(coded, body, constants)
    scalar, packed, slow = count_arithmetic(body)
    accesses = _find_accesses(body, steps)
    groups: dict[tuple[_Terms, int | str | None], list[Access]] = {}
    for at, access in accesses.items():
        step = step_of(access.terms, derive_steps(body, at, steps, writes, constants), writes)
        groups.setdefault((access.terms, step), []).append(access)
    rows = {each.terms for at, each in accesses.items() if nest is not None and nest.walks_down_rows(at, each)}
    counts = _count_accesses(groups, rows, (coded, writes))
    floating = tuple(one.address for one in body if is_arithmetic(one))
    integers = () if floating else find_scalar_integers(body, _walking(body, steps, writes))
    recurs = counts.reads_back or has_recurrence(body) or (bool(scalar or integers) and has_integer_recurrence(body))
    packed_integers = () if floating else find_packed_integers(body)
    jumps = [one for one in body[:-1] if one.jumps and one.mnemonic != "jmp"]
    calls = [one for one in body if one.mnemonic == "call"]
    return InnerLoop(
        begin=body[0].address,
        end=body[-1].address + body[-1].size,
        depth=depth,
        instructions=len(body),
        scalar=scalar,
        packed=packed,
        slow=slow,
        on_stack=sum(map(is_on_stack, body)),
        accesses=len(accesses),
        strided=counts.strided,
        far=counts.far,
        indexed=counts.indexed,
        fixed_updates=counts.fixed,
        locked=sum(one.mnemonic.startswith("lock ") for one in body),
        branches=len(jumps),
        ordered_sums=count_ordered_sums(body),
        recurs=recurs,
        calls=tuple(one.target for one in calls),
        arithmetic=floating or packed_integers or integers,
        integers=len(integers),
        packed_integers=len(packed_integers),
        fixed_divisors=sum(_divides_by_same(one, steps, writes) for one in body),
        interleaved=counts.interleaved,
        unshaped=counts.unshaped,
        trips=estimate_trips(body, steps, writes, registers),
        load_chain=(chain := find_load_chain(body)),
        searches=chain is None and is_search(body, steps),
        transposes=bool(counts.strided)
        and nest is not None
        and _transposes(nest, [terms for terms, _ in groups], rows, (steps, writes)),
    )


def _divides_by_same(one: Instruction, steps: Mapping[str, int | str], writes: Mapping[str, int]) -> bool:
    """Return whether an instruction divides by what no iteration changes, whose reciprocal can be taken before."""
    if not _DIVIDES.fullmatch(one.mnemonic) or not one.operands:
        return False
    divisor = one.operands[-1]
    if "[" not in divisor:
        return whole_register(divisor) not in writes
    access = read_access(one)
    return access is None or is_on_stack(one) or step_of(access.terms, steps, writes) == 0


def _walking(body: Sequence[Instruction], steps: Mapping[str, int | str], writes: Mapping[str, int]) -> frozenset[int]:
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
