"""Innermost loops of machine code (x86-64), and what holds each of them up: the reason why it is scalar, its strides.

A loop runs from the target of a backward jump to that jump. What is told here is read off the code; how often a loop
ran, it does not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from advisor.collect.binaries.integer_loops import (
    LARGEST_B,
    find_packed_integers,
    find_scalar_integers,
    has_integer_recurrence,
)
from advisor.collect.binaries.registers import find_step_places, find_steps, find_writes, whole_register

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction

#: Why a loop works on one number at a time: it calls, needs what the iteration before computed, goes through indices
#: (then it waits for what they name), keeps the order of a sum, branches on data, or steps over numbers; ``overlap``:
#: nothing of that, so the compiler was not asked, or feared overlapping arrays.
ScalarReason = Literal["call", "recurrence", "index", "order", "branch", "stride", "overlap"]

_ARITHMETIC: Final = re.compile(
    r"v?(?:add|sub|mul|div|sqrt|min|max|dp|hadd|hsub|addsub|round|rsqrt(?:14)?|rcp(?:14)?|fn?m(?:add|sub)(?:132|213|231)?)"
    r"(?P<width>[sp])(?P<kind>[sdh])"
)
_X87: Final = re.compile(r"f(?:i?add|i?sub|i?mul|i?div|sqrt)[rp]{0,2}")
_SLOW: Final = re.compile(r"v?(?:div|sqrt)[sp][sd]|f(?:i?div|sqrt)[rp]{0,2}")
_DIVIDES: Final = re.compile(r"v?div[sp][sd]")
_ROOTS: Final = re.compile(r"v?(?:sqrt|rsqrt|rcp|round)")
_FUSED: Final = re.compile(r"vfn?m")
_SUMS: Final = re.compile(r"v?(?:add|sub|fn?m(?:add|sub)(?:132|213|231)?)s[sd]")
_SIZES: Final[Mapping[str, int]] = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "xmmword": 16, "ymmword": 32, "zmmword": 64, "tbyte": 16,
}  # fmt: skip
_MEMORY: Final = re.compile(r"(?:(?P<size>\w+) ptr )?(?:[c-gs]s:)?\[(?P<inside>[^\]]*)\]")
_TERM: Final = re.compile(r"([-+]?)([^-+]+)")
_STACK: Final = frozenset({"rsp", "rbp"})
#: A jump back over more code than this is no innermost loop that anyone wrote.
_LONGEST: Final = 20_000
#: Numbers this many bytes apart fall into few sets of the first cache: a power of two, or a multiple of a page.
_PAGE_B: Final = 4096
#: What the last so many iterations have computed does not come in one vector.
_NEAREST: Final = 3
#: Of the bytes that a step goes over, at least this share is used by a loop of stride one.
_DENSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Access:
    """A place in memory that a loop accesses: the registers that make its address with their factors, and its bytes."""

    terms: tuple[tuple[str, int], ...]
    displacement: int
    size: int
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class InnerLoop:
    """What one innermost loop does in an iteration; counts are instructions. ``depth`` is 1 for a loop in no other.

    ``accesses`` are places outside of the own frame, of which ``strided`` are walked through in steps over numbers,
    ``far`` in steps of pages, and ``indexed`` at addresses that were loaded or computed anew. ``fixed_updates`` are
    stores to the same place in every iteration. ``recurs`` says that an iteration needs what one before it computed,
    other than as a term of a sum, be it the next random number. ``arithmetic`` are the addresses of
    instructions that compute, ``calls`` the targets of calls, None for one through a pointer. Of loops without
    floating-point arithmetic, ``integers`` and ``packed_integers`` are the instructions that compute with one integer
    of an array, or several, at a time.
    ``fixed_divisors`` are divisions by a value that stays the same in all iterations.
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

    @property
    def is_vector(self) -> bool:
        """Whether most of what it computes is done with vectors."""
        return self.packed > self.scalar or self.packed_integers > self.integers

    @property
    def scalar_reason(self) -> ScalarReason | None:
        """Why the loop works on one number at a time, None where it has vectors or computes nothing.

        Of loops over integers only what vectors would help is told: most others search, sort or count.
        """
        if self.integers and not self.packed_integers:
            holds = self.calls or self.recurs or self.indexed or self.strided or self.branches or self.fixed_updates
            return None if holds or self.locked else "overlap"
        if not self.scalar or self.packed >= self.scalar:
            return None
        if self.calls:
            return "call"
        if self.recurs:
            return "recurrence"
        if self.indexed:
            return "index"
        if self.ordered_sums:
            return "order"
        if self.branches:
            return "branch"
        return "stride" if self.strided else "overlap"


def find_inner_loops(code: Sequence[Instruction]) -> tuple[InnerLoop, ...]:
    """Return the innermost loops of a function, in the order of their addresses."""
    first = code[0].address if code else 0
    spans = {
        (one.target, one.address + one.size)
        for one in code
        if one.jumps and one.target is not None and first <= one.target <= one.address
    }
    ordered = sorted((span for span in spans if span[1] - span[0] <= _LONGEST), key=lambda span: span[1] - span[0])
    inner: list[tuple[int, int]] = []
    for begin, end in ordered:
        if not any(begin <= other[0] and other[1] <= end for other in inner):
            inner.append((begin, end))
    found = []
    for begin, end in sorted(inner):
        body = [one for one in code if begin <= one.address < end]
        if body and not any(one.mnemonic == "ret" for one in body):
            depth = len({other[0] for other in spans if other[0] <= begin and end <= other[1]})
            found.append(_describe_loop(body, depth))
    return tuple(found)


def count_arithmetic(code: Sequence[Instruction]) -> tuple[int, int, int]:
    """Return how many instructions compute with single numbers, with vectors, and divide or take roots."""
    scalar = packed = slow = 0
    for one in code:
        found = _ARITHMETIC.fullmatch(one.mnemonic)
        if found is not None:
            scalar += found["width"] == "s"
            packed += found["width"] == "p"
        elif _X87.fullmatch(one.mnemonic):
            scalar += 1
        slow += bool(_SLOW.fullmatch(one.mnemonic))
    return scalar, packed, slow


def is_arithmetic(one: Instruction) -> bool:
    """Return whether an instruction computes with floating-point numbers."""
    return bool(_ARITHMETIC.fullmatch(one.mnemonic) or _X87.fullmatch(one.mnemonic))


def is_on_stack(one: Instruction) -> bool:
    """Return whether an instruction accesses the function's own frame."""
    found = _MEMORY.fullmatch(one.memory or "")
    if found is None:
        return False
    return any(whole_register(term.partition("*")[0]) in _STACK for _, term in _TERM.findall(found["inside"]))


def _describe_loop(body: Sequence[Instruction], depth: int) -> InnerLoop:
    writes = find_writes(body)
    steps = find_steps(body, writes)
    places = find_step_places(body, steps)
    scalar, packed, slow = count_arithmetic(body)
    accesses = [
        _place_at_start(found, at, steps, places)
        for at, one in enumerate(body)
        if (found := _read_access(one)) is not None and not is_on_stack(one)
    ]
    groups: dict[tuple[tuple[str, int], ...], list[Access]] = {}
    for access in accesses:
        groups.setdefault(access.terms, []).append(access)
    strided = far = indexed = fixed = 0
    recurs = _has_recurrence(body) or (scalar > 0 and has_integer_recurrence(body))
    for terms, members in groups.items():
        step = _step_of(terms, steps, writes)
        recurs |= isinstance(step, int) and _reads_back(members, step)
        if step is None:
            indexed += len(members)
        elif step == 0:
            fixed += sum(1 for each in members if each.writes and terms)
        elif isinstance(step, str) or _is_sparse(members, step):
            strided += len(members)
            far += len(members) if not isinstance(step, str) and step % _PAGE_B == 0 else 0
    floating = tuple(one.address for one in body if is_arithmetic(one))
    integers = () if floating else find_scalar_integers(body, _walking(body, steps, writes))
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
        strided=strided,
        far=far,
        indexed=indexed,
        fixed_updates=fixed,
        locked=sum(one.mnemonic.startswith("lock ") for one in body),
        branches=len(jumps),
        ordered_sums=_count_ordered_sums(body),
        recurs=recurs,
        calls=tuple(one.target for one in calls),
        arithmetic=floating or packed_integers or integers,
        integers=len(integers),
        packed_integers=len(packed_integers),
        fixed_divisors=sum(_divides_by_same(one, steps, writes) for one in body),
    )


def _divides_by_same(one: Instruction, steps: Mapping[str, int | str], writes: Mapping[str, int]) -> bool:
    """Return whether an instruction divides by what no iteration changes, whose reciprocal can be taken before."""
    if not _DIVIDES.fullmatch(one.mnemonic) or not one.operands:
        return False
    divisor = one.operands[-1]
    if "[" not in divisor:
        return whole_register(divisor) not in writes
    access = _read_access(one)
    return access is None or is_on_stack(one) or _step_of(access.terms, steps, writes) == 0


def _walking(body: Sequence[Instruction], steps: Mapping[str, int | str], writes: Mapping[str, int]) -> frozenset[int]:
    """Return the addresses of instructions that access the next small number of an array in each iteration."""
    found = set()
    for one in body:
        access = None if is_on_stack(one) else _read_access(one)
        step = None if access is None else _step_of(access.terms, steps, writes)
        if access is not None and isinstance(step, int) and step and access.size <= LARGEST_B:
            found.add(one.address)
    return frozenset(found)


def _read_access(one: Instruction) -> Access | None:
    """Return the place in memory that an instruction accesses, None for none and for constants of the program."""
    memory = one.memory
    found = _MEMORY.fullmatch(memory) if memory is not None else None
    if found is None or one.jumps or one.mnemonic == "call":
        return None
    terms: list[tuple[str, int]] = []
    displacement = 0
    for sign, term in _TERM.findall(found["inside"]):
        register, _, factor = term.partition("*")
        if register == "rip":
            return None
        if register[:1].isdigit():
            displacement += int(register, 0) * (-1 if sign == "-" else 1)
        else:
            terms.append((whole_register(register), int(factor or "1", 0)))
    first = one.operands[0] == memory
    moves = one.mnemonic.removeprefix("v").startswith("mov")
    compares = one.mnemonic in ("cmp", "test", "ucomisd", "comisd", "ucomiss", "comiss", "vucomisd", "vcomisd")
    size = _SIZES.get(found["size"] or "", 8)
    return Access(tuple(sorted(terms)), displacement, size, not (first and moves), first and not compares)


def _place_at_start(access: Access, at: int, steps: Mapping[str, int | str], places: Mapping[str, int]) -> Access:
    """Return an access of the instruction ``at`` with the displacement from registers as an iteration finds them."""
    moved = 0
    for register, factor in access.terms:
        step = steps.get(register, 0)
        moved += step * factor if not isinstance(step, str) and places.get(register, at) < at else 0
    return replace(access, displacement=access.displacement + moved) if moved else access


def _step_of(
    terms: Sequence[tuple[str, int]], steps: Mapping[str, int | str], writes: Mapping[str, int]
) -> int | str | None:
    """Return by how many bytes an address advances in an iteration.

    The name of a register where that is known at run time only, None where the address is computed anew each time.
    """
    total = 0
    for register, factor in terms:
        step = steps.get(register)
        if isinstance(step, str):
            return step
        if step is None:
            if register in writes:
                return None
            continue
        total += step * factor
    return total


def _is_sparse(members: Sequence[Access], step: int) -> bool:
    """Return whether a loop uses only a part of the bytes that it goes over."""
    places = {(each.displacement, each.size) for each in members}
    return sum(size for _, size in places) < _DENSE * abs(step)


def _count_ordered_sums(body: Sequence[Instruction]) -> int:
    """Return how many scalar additions of an iteration follow one after the other from the iteration before.

    The value in a register at the beginning is followed through additions and copies; where it ends in the same
    register, the loop carries a sum whose order has to be kept.
    """
    carried: dict[str, dict[str, int]] = {}
    for one in body:
        if not one.operands or "[" in one.operands[0] or one.jumps or one.mnemonic in ("cmp", "test"):
            continue
        target, *sources = (whole_register(operand) for operand in one.operands if "[" not in operand)
        if _SUMS.fullmatch(one.mnemonic):
            added = _added_registers(one, target, sources)
            found = [carried.get(register, {register: 0}) for register in added]
            entries = {entry for each in found for entry in each}
            carried[target] = {entry: 1 + max(each.get(entry, -1) for each in found) for entry in entries}
        elif one.mnemonic.removeprefix("v").startswith("mova") and sources:
            carried[target] = carried.get(sources[0], {sources[0]: 0})
        elif target[:1] == "v":
            carried[target] = {}
    return max((entries.get(register, 0) for register, entries in carried.items()), default=0)


def _reads_back(members: Sequence[Access], step: int) -> bool:
    """Return whether an iteration reads what one of the last ones has written, ``step`` bytes further back each."""
    written = {each.displacement for each in members if each.writes}
    read = {each.displacement for each in members if each.reads}
    return any(place - back * step in read for place in written for back in range(1, _NEAREST + 1) if step)


def _has_recurrence(body: Sequence[Instruction]) -> bool:
    """Return whether a scalar value of an iteration goes into the same one of the next by more than additions.

    Values in registers, and in the frame where a compiler ran out of them, are followed through arithmetic and copies;
    True stands for one that was multiplied, divided or rooted on its way.
    """
    carried: dict[str, dict[str, bool]] = {}
    for one in body:
        if not one.operands or one.jumps or one.mnemonic in ("cmp", "test"):
            continue
        in_frame = is_on_stack(one)
        names = [whole_register(each) for each in one.operands if "[" not in each or in_frame]
        if "[" in one.operands[0] and not in_frame:
            continue
        target, *sources = names
        found = _ARITHMETIC.fullmatch(one.mnemonic)
        if found is not None and found["width"] == "s":
            fused = _FUSED.match(one.mnemonic) is not None
            overwrites = not fused and (len(one.operands) == 3 or _ROOTS.match(one.mnemonic) is not None)
            used = tuple(sources) if overwrites else (target, *sources)
            added = _added_registers(one, target, sources) if _SUMS.fullmatch(one.mnemonic) else ()
            entries: dict[str, bool] = {}
            for register in used:
                for entry, changed in carried.get(register, {register: False}).items():
                    entries[entry] = entries.get(entry, False) or changed or register not in added
            carried[target] = entries
        elif one.mnemonic.removeprefix("v").startswith(("mova", "movs")) and sources:
            carried[target] = carried.get(sources[0], {sources[0]: False})
        elif target[:1] == "v":
            carried[target] = {}
    return any(entries.get(register, False) for register, entries in carried.items())


def _added_registers(one: Instruction, target: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the registers whose values a scalar addition adds; of a fused one, not those that it multiplies."""
    fused = one.mnemonic[-5:-2]
    if fused == "231":
        return (target,)
    if fused in ("213", "132"):
        place = 2 if fused == "213" else 1
        return tuple(whole_register(operand) for operand in one.operands[place : place + 1] if "[" not in operand)
    return tuple(sources) if len(one.operands) == 3 else (target, *sources)
