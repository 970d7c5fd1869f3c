"""Which registers a loop writes and by how much it advances them each time (x86-64, Intel's syntax)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

_VECTOR: Final = re.compile(r"[xyz]mm(\d+)")
_NUMBERED: Final = re.compile(r"(r\d+)[dwb]?")
_PARTS: Final[Mapping[str, str]] = {
    part: whole
    for letter in "abcd"
    for whole, parts in ((f"r{letter}x", (f"r{letter}x", f"e{letter}x", f"{letter}x", f"{letter}l", f"{letter}h")),)
    for part in parts
} | {part: f"r{name}" for name in ("si", "di", "bp", "sp") for part in (f"r{name}", f"e{name}", name, f"{name}l")}
#: What makes ``rbp`` the pointer to a function's frame.
_FRAME: Final = re.compile(r"(?:mov rbp,rsp|lea rbp,\[rsp.*)")
_RBP: Final = re.compile(r"\b[re]?bpl?\b")
_BASE: Final = re.compile(r"\[(\w+)")
#: Instructions whose first operand is only read.
_ONLY_READ: Final = frozenset({
    "cmp", "test", "push", "ucomisd", "ucomiss", "comisd", "comiss", "vucomisd", "vucomiss", "vcomisd", "vcomiss",
    "call", "bt", "nop", "ret", "ptest", "vptest", "mul", "div", "idiv",
})  # fmt: skip
_CALL_WRITES: Final = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", *(f"v{n}" for n in range(16)))
_WRITES_TWO: Final = frozenset({"mul", "div", "idiv", "cqo", "cdq"})


def whole_register(name: str) -> str:
    """Return the name of the whole register that a name is a part of; vector registers are ``v0`` to ``v31``."""
    if found := _VECTOR.fullmatch(name):
        return f"v{found[1]}"
    if found := _NUMBERED.fullmatch(name):
        return found[1]
    return _PARTS.get(name, name)


def has_frame_pointer(code: Sequence[Instruction]) -> bool:
    """Return whether a function lets ``rbp`` point to its frame."""
    return any(_FRAME.fullmatch(f"{one.mnemonic} {','.join(one.operands)}") for one in code)


def free_frame_pointer(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return a function's code, with ``rbp`` as ``r16`` where it is a register like others and points to no frame."""
    if has_frame_pointer(code):
        return tuple(code)
    return tuple(
        replace(one, operands=tuple(_RBP.sub(_rename, each) for each in one.operands))
        if any("bp" in each for each in one.operands)
        else one
        for one in code
    )


def _rename(name: re.Match[str]) -> str:
    return {"rbp": "r16", "ebp": "r16d", "bp": "r16w", "bpl": "r16b"}[name[0]]


def find_writes(body: Sequence[Instruction]) -> dict[str, int]:
    """Return how often a loop writes each register in an iteration."""
    counts: Counter[str] = Counter()
    for one in body:
        if one.mnemonic == "call":
            counts.update(_CALL_WRITES)
        elif one.mnemonic in _WRITES_TWO or (one.mnemonic == "imul" and len(one.operands) == 1):
            counts.update(("rax", "rdx"))
        elif one.operands and not one.jumps and one.mnemonic not in _ONLY_READ and "[" not in one.operands[0]:
            counts[whole_register(one.operands[0])] += 1
    return dict(counts)


def find_steps(body: Sequence[Instruction], writes: Mapping[str, int]) -> dict[str, int | str]:
    """Return by how much a loop advances each register that it writes once: a number, or the register that holds it."""
    steps: dict[str, int | str] = {}
    for one in body:
        if not one.operands or "[" in one.operands[0] or one.jumps:
            continue
        register = whole_register(one.operands[0])
        if writes.get(register) != 1:
            continue
        step = _read_step(one, register)
        if isinstance(step, str) and step in writes:
            continue  # a distance that changes
        if step is not None:
            steps[register] = step
    return steps | _find_rotating(body, writes)


def _find_rotating(body: Sequence[Instruction], writes: Mapping[str, int]) -> dict[str, int | str]:
    """Return the steps of pairs of registers that advance each other: ``mov a, b`` and ``lea b, [a + 8]``."""
    copies = {
        whole_register(one.operands[1]): whole_register(one.operands[0])
        for one in body
        if one.mnemonic == "mov" and "[" not in "".join(one.operands) and _number_of(one.operands[1]) is None
    }
    found: dict[str, int | str] = {}
    for one in body:
        register = whole_register(one.operands[0]) if one.mnemonic == "lea" else ""
        source = copies.get(register, "")
        if writes.get(register) == writes.get(source) == 1 and isinstance(step := _read_step(one, source), int):
            found |= {register: step, source: step}
    return found | _find_carried(body, writes)


def _find_carried(body: Sequence[Instruction], writes: Mapping[str, int]) -> dict[str, int | str]:
    """Return the steps of counters whose next value is made in a register that then serves for something else."""
    made: dict[str, tuple[str, int]] = {}
    found: dict[str, int | str] = {}
    for one in body:
        target = whole_register(one.operands[0]) if one.operands else ""
        if one.mnemonic == "mov" and len(one.operands) == 2:
            source, step = made.get(whole_register(one.operands[1]), ("", 0))
            if source == target and writes.get(target) == 1:
                found[target] = step
        for register in find_writes((one,)):
            made.pop(register, None)
        if one.mnemonic == "lea" and (base := _BASE.search(one.operands[1])) is not None:
            source = whole_register(base[1])
            if isinstance(advance := _read_step(one, source), int) and source != target:
                made[target] = (source, advance)
    return found


def find_step_places(body: Sequence[Instruction], steps: Mapping[str, int | str]) -> dict[str, int]:
    """Return at which instruction of a loop each register is advanced."""
    return {
        register: at
        for at, one in enumerate(body)
        if one.operands and (register := whole_register(one.operands[0])) in steps and find_writes((one,)).get(register)
    }


def _read_step(one: Instruction, register: str) -> int | str | None:
    if one.mnemonic in ("inc", "dec"):
        return 1 if one.mnemonic == "inc" else -1
    if one.mnemonic in ("add", "sub") and len(one.operands) == 2 and "[" not in one.operands[1]:
        number = _number_of(one.operands[1])
        if number is None:
            return whole_register(one.operands[1])
        return number if one.mnemonic == "add" else -number
    if one.mnemonic == "lea" and len(one.operands) == 2:
        inside = one.operands[1].partition("[")[2].rstrip("]")
        base, sign, rest = inside.partition("+") if "+" in inside else inside.partition("-")
        if whole_register(base) != register or not sign:
            return None
        number = _number_of(rest)
        if number is None:
            return whole_register(rest) if rest.isalnum() else None
        return number if sign == "+" else -number
    return None


def _number_of(text: str) -> int | None:
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return number - (1 << 64) if number >= 1 << 63 else number
