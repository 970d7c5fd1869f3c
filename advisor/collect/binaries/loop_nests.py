"""By how much the addresses of an inner loop advance from one iteration of the loop around it to the next (x86-64).

That tells what an interchange of both loops would do: of a matrix product, the operand that is walked down its columns
becomes dense and nothing else changes; of a transposition, one operand becomes dense and the other one strided.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.load_chains import address_registers
from advisor.collect.binaries.memory_accesses import LINE_B, Access, is_on_stack, read_access, step_of
from advisor.collect.binaries.registers import find_steps, find_writes, whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: A step in bytes, the register that holds it, None where it is not known.
Step = int | str | None
_FACTOR: Final = re.compile(r"(\w+)\*(\d)")
#: So many instructions back a register's origin is followed.
_DEEPEST: Final = 12


class LoopNest:
    """An inner loop and the one around it: ``around`` is the code of the outer loop without that of the inner one."""

    def __init__(
        self, before: Sequence[Instruction], inner: Sequence[Instruction], behind: Sequence[Instruction]
    ) -> None:
        around = [*before, *behind]
        self._path = [*reversed(before), *reversed(behind)]
        self._body = inner
        self._inner = find_writes(inner)
        self._writes = find_writes(around)
        self._steps = find_steps(around, self._writes) | _find_bounds(inner, behind, self._writes)
        self._stored = {one.operands[0] for one in around if one.operands and is_on_stack(one)}

    def step_of(self, terms: Sequence[tuple[str, int]]) -> Step:
        """Return by how much the address that the inner loop begins with advances in the outer loop."""
        return add_steps(*(multiply_step(self._trace(register, 0), factor) for register, factor in terms))

    def strides_across_rows(self, at: int, access: Access) -> bool:
        """Return whether the access of instruction ``at`` of the inner loop takes one number of each row.

        Where an array of pointers holds the rows, the address of each row is loaded, and the place in it stays the same
        until the outer loop goes on to its neighbour: if both loops changed places, rows would be read along.
        """
        loaded = [register for register, _ in access.terms if register in self._inner]
        if len(loaded) != 1 or dict(access.terms)[loaded[0]] != 1:
            return False
        place = self.step_of([term for term in access.terms if term[0] != loaded[0]])
        if not isinstance(place, int) or not 0 < abs(place) < LINE_B:
            return False
        ways = (*reversed(self._body[:at]), *reversed(self._body[at:]))
        load = next(one for one in ways if loaded[0] in find_writes((one,)))
        pointers = read_access(load) if load.mnemonic == "mov" and not is_on_stack(load) else None
        if pointers is None:
            return False
        step = step_of(pointers.terms, find_steps(self._body, self._inner), self._inner)
        return isinstance(step, int) and step != 0 and self.step_of(pointers.terms) == 0

    def _trace(self, register: str, at: int) -> Step:
        """Return the step of a register's value, as it is found before the instruction ``at`` of the way back."""
        if register.startswith("[") or "[" in register:
            return 0  # a place in the frame
        for place in range(at, min(len(self._path), at + _DEEPEST * 10)):
            one = self._path[place]
            if register not in find_writes((one,)):
                continue
            if register in self._steps and register not in self._inner:
                return self._steps[register]
            return self._through(one, register, place + 1)
        return 0 if register not in self._inner else None

    def _through(self, one: Instruction, register: str, at: int) -> Step:
        """Return the step of what an instruction computes."""
        source = one.operands[-1]
        if one.mnemonic in ("xor", "sub") and one.operands[0] == source:
            return 0
        if one.mnemonic == "mov":
            if "[" not in source:
                return 0 if source[:1].isdigit() else self._trace(whole_register(source), at)
            return 0 if is_on_stack(one) and source not in self._stored else None
        if one.mnemonic == "lea":
            factors = {whole_register(name): int(factor) for name, factor in _FACTOR.findall(source)}
            return add_steps(*(
                multiply_step(self._trace(each, at), factors.get(each, 1)) for each in set(address_registers(source))
            ))  # fmt: skip
        if one.mnemonic in ("add", "sub") and len(one.operands) == 2 and "[" not in source:
            more = 0 if source.lstrip("-")[:1].isdigit() else self._trace(whole_register(source), at)
            return add_steps(self._trace(register, at), more)
        return None


def _find_bounds(
    inner: Sequence[Instruction], behind: Sequence[Instruction], writes: Mapping[str, int]
) -> dict[str, int | str]:
    """Return the steps of registers that hold the end of the inner loop, and are made of the pointer that got there.

    Behind ``cmp rax,rcx; jne`` both are the same, and ``lea rcx,[rax+8]`` advances the end by 8.
    """
    compared = inner[-2] if len(inner) > 1 and inner[-2].mnemonic == "cmp" and inner[-1].mnemonic == "jne" else None
    if compared is None or any("[" in each for each in compared.operands):
        return {}
    pair = {whole_register(each) for each in compared.operands}
    found: dict[str, int | str] = {}
    for one in behind:
        if one.mnemonic != "lea" or writes.get(end := whole_register(one.operands[0])) != 1 or end not in pair:
            continue
        pointer = next(iter(pair - {end}), end)
        renamed = replace(one, operands=(one.operands[0], re.sub(rf"\b{pointer}\b", end, one.operands[1])))
        found |= find_steps((renamed,), {end: 1})
    return found


def add_steps(*steps: Step) -> Step:
    """Return the step of a sum."""
    if any(step is None for step in steps):
        return None
    names = [step for step in steps if isinstance(step, str)]
    return names[0] if names else sum(step for step in steps if isinstance(step, int))


def multiply_step(step: Step, factor: int) -> Step:
    """Return the step of a multiple."""
    return step * factor if isinstance(step, int) else step


def is_transposition(inner_steps: Mapping[int, Step], outer_steps: Mapping[int, Step]) -> bool:
    """Return whether one operand is walked through densely by the inner loop and in leaps by the outer one, and another
    the other way round; both mappings hold the steps of the same operands.
    """

    def is_leap(step: Step) -> bool:
        return isinstance(step, str) or (step is not None and abs(step) >= LINE_B)

    def is_dense(step: Step) -> bool:
        return isinstance(step, int) and 0 < abs(step) < LINE_B

    pairs = [(inner_steps[key], outer_steps[key]) for key in inner_steps]
    return any(is_dense(a) and is_leap(b) for a, b in pairs) and any(is_leap(a) and is_dense(b) for a, b in pairs)
