"""Places in memory that the instructions of a loop access, and by how much they advance (x86-64)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.registers import find_writes, whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

_SIZES: Final[Mapping[str, int]] = {
    "byte": 1, "word": 2, "dword": 4, "qword": 8, "xmmword": 16, "ymmword": 32, "zmmword": 64, "tbyte": 16,
}  # fmt: skip
_MEMORY: Final = re.compile(r"(?:(?P<size>\w+) ptr )?(?:[c-gs]s:)?\[(?P<inside>[^\]]*)\]")
_TERM: Final = re.compile(r"([-+]?)([^-+]+)")
_STACK: Final = frozenset({"rsp", "rbp"})
#: Bytes of a line of the cache.
LINE_B: Final = 64
#: Objects of more bytes than this are more often rows of a matrix.
_LARGEST_OBJECT_B: Final = 128
#: Of the bytes that a step goes over, or of a line, a loop that walks along memory uses at least this share.
_DENSE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Access:
    """A place in memory that a loop accesses: the registers that make its address with their factors, and its bytes."""

    terms: tuple[tuple[str, int], ...]
    displacement: int
    size: int
    reads: bool
    writes: bool


def is_on_stack(one: Instruction) -> bool:
    """Return whether an instruction accesses the function's own frame."""
    found = _MEMORY.fullmatch(one.memory or "")
    if found is None:
        return False
    return any(whole_register(term.partition("*")[0]) in _STACK for _, term in _TERM.findall(found["inside"]))


def read_access(one: Instruction) -> Access | None:
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


def place_at_start(access: Access, at: int, steps: Mapping[str, int | str], places: Mapping[str, int]) -> Access:
    """Return an access of the instruction ``at`` with the displacement from registers as an iteration finds them."""
    moved = 0
    for register, factor in access.terms:
        step = steps.get(register, 0)
        moved += step * factor if not isinstance(step, str) and places.get(register, at) < at else 0
    return replace(access, displacement=access.displacement + moved) if moved else access


def step_of(
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


def is_sparse(members: Sequence[Access], step: int | str) -> bool:
    """Return whether a loop uses only a part of the bytes that it goes over, or of the lines that it touches.

    A step that is known at run time only is taken to lead to other lines.
    """
    used = sum(size for _, size in {(each.displacement, each.size) for each in members})
    if not isinstance(step, str) and abs(step) < LINE_B:
        return used < _DENSE * abs(step)
    return used < _DENSE * LINE_B * len({each.displacement // LINE_B for each in members})


def is_interleaved(members: Sequence[Access], step: int) -> bool:
    """Return whether a loop goes from object to object, and takes some neighbouring numbers of each.

    Complex numbers and pairs, of which nothing is left out, fit into vectors as they are.
    """
    places = sorted({(each.displacement % abs(step), each.size) for each in members}) if step else []
    if len(places) < 2 or abs(step) > _LARGEST_OBJECT_B:
        return False
    neighbours = any(a + size == b for (a, size), (b, _) in pairwise(places))
    return neighbours and (len(places) > 2 or sum(size for _, size in places) < abs(step))


def name_origins(body: Sequence[Instruction], at: int, access: Access, steps: Mapping[str, int | str]) -> Access:
    """Return an access of the instruction ``at`` with registers named after what they were copied or reloaded from.

    A compiler that runs out of registers keeps an address in the frame and loads it anew in each iteration: that place
    stays the same as long as the loop does not store there.
    """
    writes = find_writes(body)
    stored = {one.operands[0] for one in body if one.operands and is_on_stack(one) and "[" in one.operands[0]}
    terms = []
    for register, factor in access.terms:
        origin = register
        if register in writes and register not in steps:
            written = next((one for one in reversed(body[:at]) if register in find_writes((one,))), None)
            if written is not None and written.mnemonic == "mov":
                source = written.operands[1]
                if "[" not in source:
                    origin = whole_register(source)
                elif is_on_stack(written) and source not in stored:
                    origin = source
        terms.append((origin, factor))
    return replace(access, terms=tuple(sorted(terms)))
