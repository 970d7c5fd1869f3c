"""Integer arithmetic of innermost loops (x86-64): is it vectorized, and could it be?

What counts is arithmetic on numbers of arrays that the loop walks through one after the other, of up to 4 bytes each:
addresses, counters and searches are no such arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from advisor.collect.binaries.registers import find_writes, whole_register

if TYPE_CHECKING:
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

#: Cycles from an operand to the result, of current processors.
_MULTIPLY_CYCLES: Final = 3
#: What changes a number other than by adding to it: a generator of random numbers, a hash.
_MIXES: Final = re.compile(r"imul|xor|or|shl|sal|shr|sar|rol|ror|sh[lr]d|shlx|shrx|sarx|rorx|not|neg|bswap|crc32")
#: A chain of integers this long leaves a floating-point addition, which takes four cycles, little to wait for.
_LONG_CHAIN: Final = 3


class Chain(NamedTuple):
    """The way of a value through integer instructions: its cycles, and whether it was more than added to."""

    cycles: int
    mixed: bool


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


def has_integer_recurrence(body: Sequence[Instruction]) -> bool:
    """Return whether an integer of an iteration comes from that of the iteration before by several cycles of mixing.

    So do generators of random numbers and hashes; counters, addresses and sums don't. Values in registers are followed
    through arithmetic and copies, each by its longest way.
    """
    carried: dict[str, dict[str, Chain]] = {}
    for one in body:
        if not one.operands or one.jumps or one.mnemonic in _COMPARES:
            continue
        target = whole_register(one.operands[0]) if "[" not in one.operands[0] else None
        written = [register for register in find_writes((one,)) if register != target]
        if target is not None and _is_integer_work(one):
            used = [whole_register(each) for each in one.operands[not _keeps_target(one) :] if "[" not in each]
            if one.mnemonic == "lea":
                used = [whole_register(each) for each in re.findall(r"[a-z]\w+", one.operands[1])]
            carried[target] = _extend_chains(one, used, carried)
            if len(set(one.operands)) == 1 and one.mnemonic == "xor":
                carried[target] = {}  # set to zero
        elif target is not None:
            carried[target] = {}
        for register in written:
            carried[register] = {}
    return any(
        entry == register and chain.mixed and chain.cycles >= _LONG_CHAIN
        for register, chains in carried.items()
        for entry, chain in chains.items()
    )


def _is_integer_work(one: Instruction) -> bool:
    """Return whether the first operand of an instruction is a register that takes an integer made of the others."""
    known = one.mnemonic in _COMBINES or _MIXES.fullmatch(one.mnemonic) or _MOVES.fullmatch(one.mnemonic)
    return bool(known) and not (one.mnemonic == "imul" and len(one.operands) == 1)


def _extend_chains(one: Instruction, used: Sequence[str], carried: dict[str, dict[str, Chain]]) -> dict[str, Chain]:
    """Return the ways to what an instruction computes from some registers, by the register where each began."""
    moves = _MOVES.fullmatch(one.mnemonic) is not None
    cycles = _MULTIPLY_CYCLES if one.mnemonic == "imul" else int(not moves)
    mixes = _MIXES.fullmatch(one.mnemonic) is not None
    found: dict[str, Chain] = {}
    for register in used:
        for entry, chain in carried.get(register, {register: Chain(0, False)}).items():
            longer = Chain(chain.cycles + cycles, chain.mixed or mixes)
            known = found.get(entry, longer)
            found[entry] = Chain(max(known.cycles, longer.cycles), known.mixed or longer.mixed)
    return found
