"""Whether an inner loop spins: it asks the same place in memory until another thread has written there (x86-64).

Such a loop computes nothing: the time in it is waiting, whatever the clocks of the processor say. A compiler keeps one
only for atomic or volatile places, as it moves every other load out of a loop that stores nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.registers import find_writes, whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: Longer loops do something while they wait.
_LONGEST: Final = 16
#: What turns a word that was loaded into an answer; all of it repeats alike as long as the word stays the same.
_PLAIN: Final = re.compile(r"mov(?:zx|sx|sxd)?|xor|and|or|not|sh[lr]|lea|add|sub|inc|dec|set\w+|cmp|test|bt|xchg")
_IDLE: Final = re.compile(r"pause|nop.*|endbr64")
_COMPARES: Final = ("cmp", "test", "bt")
_NAME: Final = re.compile(r"\b[a-z][a-z0-9]*")


def is_spin(body: Sequence[Instruction], steps: Mapping[str, int | str]) -> bool:
    """Return whether all that a loop does is to ask places that stay the same, and to compare.

    It may count how often it asked, and swap a lock's word for its own. ``steps`` are the registers that it advances.
    """
    if len(body) > _LONGEST or any(one.mnemonic == "jmp" for one in body[:-1]):
        return False  # code behind a jump belongs to something else
    if not any(one.jumps and one.mnemonic != "jmp" for one in body):
        return False
    carried = set(find_writes(body))  # what an iteration finds from the one before, until it is set anew
    asks = False
    for one in body:
        if one.jumps or _IDLE.fullmatch(one.mnemonic):
            continue
        if not _PLAIN.fullmatch(one.mnemonic):
            return False
        if one.memory is not None:
            if _registers_of(one.memory) & carried or not _only_reads(one):
                return False
            asks = True
        for register in find_writes((one,)):
            if not _sources_of(one, register) & carried:
                carried.discard(register)
            elif register not in steps:
                return False
    return asks


def _only_reads(one: Instruction) -> bool:
    """Return whether an instruction changes nothing in memory, or only swaps a word there, as who takes a lock does."""
    return one.memory != one.operands[0] or one.mnemonic in (*_COMPARES, "xchg")


def _sources_of(one: Instruction, register: str) -> set[str]:
    """Return the registers of which the new value of one is made."""
    if one.mnemonic == "xor" and len(set(one.operands)) == 1:
        return set()
    sources: set[str] = set().union(*map(_registers_of, one.operands[1:]))
    replaces = one.mnemonic.startswith(("mov", "set", "lea", "xchg"))
    return sources if replaces else sources | {register}


def _registers_of(operand: str) -> set[str]:
    """Return the whole registers that are named in an operand."""
    inside = operand.partition("[")[2].rstrip("]") if "[" in operand else operand
    return {whole_register(name) for name in _NAME.findall(inside)} - {"rip"}
