"""Floating-point arithmetic in machine code (x86-64): on single numbers or vectors, and what takes long of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.float_chains import ARITHMETIC
from advisor.collect.binaries.memory_accesses import is_on_stack, read_access, step_of
from advisor.collect.binaries.registers import whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

_X87: Final = re.compile(r"f(?:i?add|i?sub|i?mul|i?div|sqrt)[rp]{0,2}")
_SLOW: Final = re.compile(r"v?(?:div|sqrt)[sp][sd]|f(?:i?div|sqrt)[rp]{0,2}")
_DIVIDES: Final = re.compile(r"v?div[sp][sd]")


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
        slow += is_slow(one)
    return scalar, packed, slow


def is_extended(one: Instruction) -> bool:
    """Return whether an instruction computes with the longer vectors and three operands of AVX, as later ones do."""
    return one.mnemonic.startswith("v") and ARITHMETIC.fullmatch(one.mnemonic) is not None


def is_arithmetic(one: Instruction) -> bool:
    """Return whether an instruction computes with floating-point numbers."""
    return bool(ARITHMETIC.fullmatch(one.mnemonic) or _X87.fullmatch(one.mnemonic))


def is_slow(one: Instruction) -> bool:
    """Return whether an instruction divides floating-point numbers or takes a root."""
    return bool(_SLOW.fullmatch(one.mnemonic))


def divides_by_same(one: Instruction, steps: Mapping[str, int | str], writes: Mapping[str, int]) -> bool:
    """Return whether an instruction divides by what no iteration changes, whose reciprocal can be taken before."""
    if not _DIVIDES.fullmatch(one.mnemonic) or not one.operands:
        return False
    divisor = one.operands[-1]
    if "[" not in divisor:
        return whole_register(divisor) not in writes
    access = read_access(one)
    return access is None or is_on_stack(one) or step_of(access.terms, steps, writes) == 0
