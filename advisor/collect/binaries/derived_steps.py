"""Steps of addresses that a loop computes anew in each iteration from what it counts; how often it runs (x86-64).

Of ``a[i * n + j]`` with numbers of 32 bits and a length known at run time only, compilers often keep the
multiplication.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.collect.binaries.load_chains import address_registers
from advisor.collect.binaries.loop_nests import Step, add_steps, multiply_step
from advisor.collect.binaries.registers import find_writes, whole_register
from advisor.collect.binaries.sampled_addresses import COLUMNS, FEW_SAMPLES, Registers

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

_COPIES: Final = re.compile(r"mov|movsxd?|movzx|movabs")
_FACTOR: Final = re.compile(r"(\w+)\*(\d)")
_HALVES: Final = re.compile(r"e\w\w|r\d+d")
#: Of a loop that is entered again and again, so many of the samples see no more iterations ahead than it mostly has.
_MOST: Final = 95


def derive_steps(
    body: Sequence[Instruction],
    at: int,
    steps: Mapping[str, int | str],
    writes: Mapping[str, int],
    values: Mapping[str, int],
) -> dict[str, int | str]:
    """Return the steps of registers as the instruction ``at`` of a loop finds them, those of counters among them.

    ``values`` are those of registers that stay the same in the loop, as far as samples tell.
    """
    known: dict[str, Step] = {**dict.fromkeys(writes), **steps}
    for one in body[:at]:
        result = _step_of_result(one, known, values)
        for register in find_writes((one,)):
            if register not in steps:
                known[register] = result
    return {register: step for register, step in known.items() if step is not None}


def _step_of_result(one: Instruction, known: Mapping[str, Step], values: Mapping[str, int]) -> Step:
    def find_step(operand: str) -> Step:
        if operand.lstrip("-")[:1].isdigit():
            return 0
        return None if "[" in operand else known.get(whole_register(operand), 0)

    target, *sources = one.operands or ("",)
    if not sources:
        return None
    if _COPIES.fullmatch(one.mnemonic):
        return find_step(sources[0])
    if one.mnemonic == "lea":
        factors = {whole_register(name): int(factor) for name, factor in _FACTOR.findall(sources[0])}
        return add_steps(
            *(multiply_step(find_step(each), factors.get(each, 1)) for each in address_registers(sources[0]))
        )
    if one.mnemonic in ("add", "sub"):
        sign = 1 if one.mnemonic == "add" else -1
        return add_steps(find_step(target), multiply_step(find_step(sources[0]), sign))
    if one.mnemonic in ("shl", "sal") and sources[0].isdigit():
        return multiply_step(find_step(target), 1 << int(sources[0]))
    return _step_of_product(one, find_step(sources[0]), find_step(sources[1] if len(sources) > 1 else target), values)


def _step_of_product(one: Instruction, first: Step, second: Step, values: Mapping[str, int]) -> Step:
    """Return the step of a product of a counter and a value that stays the same; its name where it is not known."""
    if one.mnemonic != "imul" or first is None or second is None or (first and second):
        return None
    if not first and not second:
        return 0
    stays = one.operands[1] if second else one.operands[2] if len(one.operands) > 2 else one.operands[0]
    value = int(stays, 0) if stays[:1].isdigit() else values.get(whole_register(stays))
    return multiply_step(first or second, value) if value is not None else whole_register(stays)


def estimate_trips(
    body: Sequence[Instruction],
    steps: Mapping[str, int | str],
    writes: Mapping[str, int],
    registers: Mapping[int, Registers],
) -> int | None:
    """Return how many iterations a loop mostly has, by what its counter lacks to its end at samples.

    None where the samples are few, or the loop ends in another way. A loop may be left in its midst, where compilers
    enter it there.
    """
    pairs = [one for one, after in pairwise(body) if one.mnemonic == "cmp" and _leaves(body, after)]
    lacking = (_count_lacking(one.operands, body, steps, writes, registers) for one in reversed(pairs))
    return next((trips for trips in lacking if trips is not None), None)


def _leaves(body: Sequence[Instruction], jump: Instruction) -> bool:
    """Return whether a conditional jump decides on another iteration: the last one of a loop, or one out of it."""
    if not jump.jumps or jump.mnemonic == "jmp" or jump.target is None:
        return False
    return jump is body[-1] or not body[0].address <= jump.target <= body[-1].address


def _count_lacking(
    compared: Sequence[str],
    body: Sequence[Instruction],
    steps: Mapping[str, int | str],
    writes: Mapping[str, int],
    registers: Mapping[int, Registers],
) -> int | None:
    counter, end = compared
    if not isinstance(steps.get(whole_register(counter)), int):
        counter, end = end, counter
    step, stop = steps.get(whole_register(counter)), whole_register(end)
    seen = [registers[one.address] for one in body if one.address in registers]
    drawn = np.concatenate(seen) if seen else np.zeros((0, len(COLUMNS)), dtype=np.uint64)
    if not isinstance(step, int) or not step or len(drawn) < FEW_SAMPLES or whole_register(counter) not in COLUMNS:
        return None
    width = np.int32 if _HALVES.fullmatch(counter) else np.int64
    now = drawn[:, COLUMNS[whole_register(counter)]].astype(width).astype(np.int64)
    if stop in COLUMNS and stop not in writes:
        last = drawn[:, COLUMNS[stop]].astype(width).astype(np.int64)
    elif end.lstrip("-")[:1].isdigit():
        last = np.full(len(drawn), int(end, 0), dtype=np.int64)
    else:
        return None
    return max(int(np.percentile((last - now) // step, _MOST)) + 1, 1)
