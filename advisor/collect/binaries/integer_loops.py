"""Integer arithmetic of innermost loops (x86-64): is it vectorized, and could it be?

What counts is arithmetic on numbers of arrays that the loop walks through one after the other, of up to 4 bytes each:
addresses, counters and searches are no such arithmetic.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.registers import find_writes, whole_register

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from advisor.collect.binaries.disassembly import Instruction

#: Numbers of more bytes leave room for two in a vector of the oldest x86-64: that is not worth the trouble.
LARGEST_B: Final = 4
_PACKED: Final = re.compile(
    r"v?p(?:add|sub|mull|mulu|mulh|madd|min|max|cmpeq|cmpgt|and|andn|or|xor|abs|avg|sad|sll|srl|sra|blend)\w*"
)
_MOVES: Final = re.compile(r"mov(?:zx|sx|sxd|abs)?")
_COMBINES: Final = frozenset(
    {"add", "sub", "and", "or", "xor", "imul", "shl", "sal", "shr", "sar", "neg", "not", "lea"}
)
_COMPARES: Final = frozenset({"cmp", "test"})
_CHOOSES: Final = re.compile(r"cmov\w+")
#: What a vector can add up in any order.
_REDUCTIONS: Final = ({"add"}, {"sub"}, {"and"}, {"or"}, {"xor"}, {"imul"}, {"cmp", "cmov"})


def find_packed_integers(body: Sequence[Instruction]) -> tuple[int, ...]:
    """Return the addresses of instructions that compute with vectors of integers."""
    return tuple(one.address for one in body if _PACKED.fullmatch(one.mnemonic))


def find_scalar_integers(body: Sequence[Instruction], walking: Collection[int]) -> tuple[int, ...]:
    """Return the addresses of instructions that compute with one integer of an array at a time.

    ``walking`` are the addresses of instructions that read or write the next number of an array in each iteration. The
    result is empty where an iteration needs what the one before it has computed other than as a sum, least or largest
    number: then no vector helps.
    """
    elements: set[str] = set()
    work: list[int] = []
    for _ in range(2):  # the second time with what the iteration before left in registers
        work = _follow_elements(body, walking, elements)
    carried = [register for register in elements if _is_read_first(body, register)]
    return () if any(not _is_reduction(body, register) for register in carried) else tuple(work)


def _follow_elements(body: Sequence[Instruction], walking: Collection[int], elements: set[str]) -> list[int]:
    """Return the addresses of arithmetic on elements; ``elements`` are the registers that hold some, and is changed."""
    work = []
    for one in body:
        if one.jumps or not one.operands:
            continue
        registers = [whole_register(each) for each in one.operands if "[" not in each]
        uses = one.address in walking or not elements.isdisjoint(registers if _keeps_target(one) else registers[1:])
        if uses and (one.mnemonic in _COMBINES or one.mnemonic in _COMPARES or _CHOOSES.fullmatch(one.mnemonic)):
            work.append(one.address)
        elif uses and _MOVES.fullmatch(one.mnemonic) is None:
            uses = False
        for register in find_writes((one,)):
            if uses and "[" not in one.operands[0]:
                elements.add(register)
            elif one.mnemonic not in _COMPARES:
                elements.discard(register)
    return work


def _keeps_target(one: Instruction) -> bool:
    """Return whether an instruction reads the operand that it writes."""
    if _MOVES.fullmatch(one.mnemonic) or one.mnemonic == "lea":
        return "[" in one.operands[0]
    return len(one.operands) < 3


def _is_read_first(body: Sequence[Instruction], register: str) -> bool:
    """Return whether a register's first use in an iteration is to be read."""
    for one in body:
        names = [whole_register(each) for each in one.operands if "[" not in each]
        inside = any(register in re.split(r"\W", each) for each in one.operands if "[" in each)
        if inside or register in names[1:] or (register in names and _keeps_target(one)):
            return True
        if register in find_writes((one,)):
            return False
    return False


def _is_reduction(body: Sequence[Instruction], register: str) -> bool:
    """Return whether a value that goes from one iteration to the next is a sum or the like, and nothing else."""
    kinds = set()
    for one in body:
        if register in {whole_register(each) for each in one.operands if "[" not in each}:
            kinds.add("cmov" if _CHOOSES.fullmatch(one.mnemonic) else one.mnemonic)
    return any(kinds <= allowed for allowed in _REDUCTIONS)
