"""Floating-point values that go from one iteration of a loop to the next: sums and recurrences (x86-64)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.memory_accesses import is_on_stack
from advisor.collect.binaries.registers import whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: Floating-point arithmetic: on single numbers (``s``) or vectors (``p``).
ARITHMETIC: Final = re.compile(
    r"v?(?:add|sub|mul|div|sqrt|min|max|dp|hadd|hsub|addsub|round|rsqrt(?:14)?|rcp(?:14)?|fn?m(?:add|sub)(?:132|213|231)?)"
    r"(?P<width>[sp])(?P<kind>[sdh])"
)
_ROOTS: Final = re.compile(r"v?(?:sqrt|rsqrt|rcp|round)")
_FUSED: Final = re.compile(r"vfn?m")
#: Sums, and the largest or smallest number: reductions that are the same in any order, but for rounding and signs of 0.
_SUMS: Final = re.compile(r"v?(?:add|sub|min|max|fn?m(?:add|sub)(?:132|213|231)?)s[sd]")
#: Between integers and floating-point numbers; integers that are copied or added up.
_CONVERTS: Final = re.compile(r"v?cvt")
_PASSES: Final = re.compile(r"mov|movsxd?|movzx|lea|add|sub|inc|dec|neg")
_REGISTER: Final = re.compile(r"[a-z]\w+")


def count_ordered_sums(body: Sequence[Instruction]) -> int:
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


def has_recurrence(body: Sequence[Instruction]) -> bool:
    """Return whether a scalar value of an iteration goes into the same one of the next by more than additions.

    Values in registers, and in the frame where a compiler ran out of them, are followed through arithmetic, copies and
    integers, as where digits are carried; True stands for one that was multiplied, divided, rooted or rounded.
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
        found = ARITHMETIC.fullmatch(one.mnemonic)
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
        elif _CONVERTS.match(one.mnemonic) and sources:
            carried[target] = dict.fromkeys(carried.get(sources[-1], {sources[-1]: False}), True)
        elif _PASSES.fullmatch(one.mnemonic) and "[" not in target:
            carried[target] = _pass_integers(one, sources if one.mnemonic.startswith("mov") else names, carried)
        else:
            carried[target] = {}
    return any(entries.get(register, False) for register, entries in carried.items())


def _pass_integers(one: Instruction, used: Sequence[str], carried: Mapping[str, Mapping[str, bool]]) -> dict[str, bool]:
    """Return what an integer that is copied, or to which others are added, was made of."""
    names = [whole_register(name) for name in _REGISTER.findall(one.operands[1])] if one.mnemonic == "lea" else used
    entries: dict[str, bool] = {}
    for name in names:
        for entry, changed in carried.get(name, {name: False}).items():
            entries[entry] = entries.get(entry, False) or changed
    return entries


def _added_registers(one: Instruction, target: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the registers whose values a scalar addition adds; of a fused one, not those that it multiplies."""
    fused = one.mnemonic[-5:-2]
    if fused == "231":
        return (target,)
    if fused in ("213", "132"):
        place = 2 if fused == "213" else 1
        return tuple(whole_register(operand) for operand in one.operands[place : place + 1] if "[" not in operand)
    return tuple(sources) if len(one.operands) == 3 else (target, *sources)
