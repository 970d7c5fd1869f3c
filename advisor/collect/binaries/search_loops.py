"""Whether an inner loop searches an array: for the first element that fits, or for the smallest one (x86-64).

Such a loop computes nothing and stores nothing, and its length depends on where the answer stands: no vector and no
cache makes up for a table, an order or a mark in which one step finds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.float_arithmetic import is_arithmetic
from advisor.collect.binaries.memory_accesses import read_access
from advisor.collect.binaries.registers import find_writes, whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: Longer loops do something with each element.
_LONGEST: Final = 16
_LOADS: Final = re.compile(r"mov(?:zx|sx|sxd)?|v?movs[sd]")
_COMPARES: Final = re.compile(r"cmp|test|v?u?comis[sd]")
_CHOOSES: Final = re.compile(r"v?(?:min|max)[sp][sd]")


def is_search(body: Sequence[Instruction], steps: Mapping[str, int | str]) -> bool:
    """Return whether a loop only compares what it loads from places that advance, and may end at any of them.

    ``steps`` are the registers that it advances, by their steps.
    """
    if len(body) > _LONGEST or not steps:
        return False
    loaded: set[str] = set()
    decided = leaves = False
    for at, one in enumerate(body):
        if one.jumps:
            leaves |= decided and one.mnemonic != "jmp" and _ends_loop(body, at)
            continue
        access = read_access(one)
        walks = access is not None and any(register in steps for register, _ in access.terms)
        if _COMPARES.fullmatch(one.mnemonic):
            decided = walks or any(whole_register(each) in loaded for each in one.operands if "[" not in each)
        elif walks and _LOADS.fullmatch(one.mnemonic) and "[" not in one.operands[0]:
            loaded.add(whole_register(one.operands[0]))
        elif access is not None or not set(find_writes((one,))) <= set(steps):
            return False
    return leaves


def is_bisection(body: Sequence[Instruction]) -> bool:
    """Return whether a loop halves a range of places until it is short, by what it loads in the middle."""
    if len(body) > _LONGEST + 4:
        return False
    shifts = (one.operands for one in body if one.mnemonic in ("sar", "shr"))
    halves = any(len(operands) == 1 or operands[-1] in ("1", "0x1") for operands in shifts)
    asks = [one for one in body if _COMPARES.fullmatch(one.mnemonic)]
    looks = [one for one in body if (access := read_access(one)) is not None and access.terms]
    stores = any(one.operands and "[" in one.operands[0] and one.mnemonic.startswith(("mov", "vmov")) for one in body)
    chooses = any(one.mnemonic.startswith("cmov") for one in body) or sum(one.jumps for one in body) > 1
    return (
        halves
        and len(asks) > 1
        and len(looks) == 1
        and chooses
        and not stores
        and not any(one.mnemonic == "call" for one in body)
    )


def is_selection(body: Sequence[Instruction], steps: Mapping[str, int | str]) -> bool:
    """Return whether a loop only looks for the place of the smallest or largest of the elements of an array.

    It keeps the place that it is at, wherever what it loads there is better than the best so far.
    """
    if len(body) > _LONGEST + 4 or not steps or any(one.mnemonic == "call" or _computes(one) for one in body):
        return False
    compares = keeps = False
    passed = 0  # the furthest that a jump over a piece of the loop leads to
    for one in body:
        if one.jumps:
            if one.mnemonic != "jmp" and one.target is not None and one.address < one.target:
                passed = max(passed, one.target)
            continue
        if one.mnemonic.startswith(("mov", "vmov")) and "[" in one.operands[0]:
            return False
        access = read_access(one)
        walks = access is not None and any(register in steps for register, _ in access.terms)
        compares |= walks or _COMPARES.fullmatch(one.mnemonic) is not None
        chosen = one.mnemonic.startswith("cmov") or (one.mnemonic == "mov" and one.address < passed)
        if chosen and "[" not in one.operands[1] and whole_register(one.operands[0]) not in steps:
            keeps |= whole_register(one.operands[1]) in steps
    return compares and keeps


def _computes(one: Instruction) -> bool:
    return is_arithmetic(one) and not _CHOOSES.fullmatch(one.mnemonic)


def _ends_loop(body: Sequence[Instruction], at: int) -> bool:
    """Return whether a jump decides if there is another iteration: it leads out, or back to the beginning."""
    target = body[at].target
    if target is None or target == body[0].address:
        return target is not None
    return not body[0].address < target <= body[-1].address
