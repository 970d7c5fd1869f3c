"""Functions that call themselves with numbers and only return a number: equal arguments give equal results (x86-64).

Fibonacci numbers, knapsacks, edit distances and counts of paths are written like this, and compute the same again and
again. What goes through trees or halves ranges never meets an argument twice, and what stores into memory or calls
others does more than return a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.float_arithmetic import is_arithmetic
from advisor.collect.binaries.memory_accesses import is_on_stack
from advisor.collect.binaries.registers import whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.elf_files import Symbol

#: Registers that carry the first arguments.
_ARGUMENTS: Final = frozenset(["rdi", "edi", "rsi", "esi", "rdx", "edx", "rcx", "ecx", "r8", "r8d", "r9", "r9d"])
#: Take parts: of ranges that are halved, or of masks.
_PARTS: Final = ("shr", "sar", "sal", "shl", "div", "idiv", "rol", "ror", "bt", "popcnt", "tzcnt", "bsf")
#: An address of a register and itself.
_TWICE: Final = re.compile(r"\[(\w+) ?\+ ?(?:\1\b(?!\*)|\1\*1\b)")
_COUNTS_DOWN: Final = ("sub", "dec")
#: Only read what is in memory.
_READERS: Final = ("cmp", "test", "push", "bt")


def computes_again(code: Sequence[Instruction], symbol: Symbol) -> bool:
    """Return whether a function computes results of smaller ones of its own kind, twice or more often for each call."""
    calls = [one for one in code if one.mnemonic == "call"]
    if not calls or any(one.target is None or not symbol.begin <= one.target < symbol.end for one in calls):
        return False
    if len(calls) < 2 and not _repeats(code, calls[0]):
        return False
    if any(_does_more(one) for one in code) or _passes_doubled(code):
        return False
    return any(one.mnemonic in _COUNTS_DOWN or _is_less(one) for one in code if "rsp" not in one.operands[:1])


def _repeats(code: Sequence[Instruction], call: Instruction) -> bool:
    """Return whether a call lies in a loop, which compilers make of the last one of several."""
    return any(one.jumps and one.target is not None and one.target <= call.address < one.address for one in code)


def _does_more(one: Instruction) -> bool:
    """Return whether an instruction stores, computes with floating-point numbers, follows a pointer or takes parts."""
    memory = one.memory
    if memory is not None and not is_on_stack(one):
        stores = one.operands[0] == memory and not one.mnemonic.startswith(_READERS)
        if stores or (one.mnemonic.startswith("mov") and one.operands[0] in _ARGUMENTS and _is_pointer(one)):
            return True
    scaled = one.mnemonic in ("shl", "sal") and one.operands[-1] != "cl"  # an index, or a constant
    return is_arithmetic(one) or (one.mnemonic.startswith(_PARTS) and not scaled)


def _passes_doubled(code: Sequence[Instruction]) -> bool:
    """Return whether a doubled number is passed on: that of a node of a tree that is kept in an array."""
    doubled: set[str] = set()
    for one in code:
        if not one.operands or one.operands[0] == one.memory:
            continue
        target, source = whole_register(one.operands[0]), whole_register(one.operands[-1])
        twice = one.mnemonic == "add" and target == source
        twice |= one.mnemonic == "lea" and _TWICE.search(one.operands[1]) is not None
        if twice or (one.mnemonic == "mov" and source in doubled):
            doubled.add(target)
        elif one.mnemonic in ("mov", "movsxd", "xor", "lea", "call"):
            doubled.discard("rax" if one.mnemonic == "call" else target)
        if target in doubled and one.operands[0] in _ARGUMENTS:
            return True
    return False


def _is_pointer(one: Instruction) -> bool:
    """Return whether a whole register is loaded: the address of a part of a tree, to be passed on."""
    return one.operands[0].startswith("r") and not one.operands[0].endswith("d")


def _is_less(one: Instruction) -> bool:
    return one.mnemonic == "lea" and "-" in one.operands[1] and "*" not in one.operands[1]
