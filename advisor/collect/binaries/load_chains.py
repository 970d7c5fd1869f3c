"""Whether an iteration of a loop has to load something before the next one knows where to load from (x86-64).

Lists, trees and hash chains are walked through in this way: each load waits for the one before, 4 to 5 cycles from the
first cache and hundreds from memory, and no processor or compiler can begin the next one earlier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from advisor.collect.binaries.registers import find_writes, whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: ``pointer``: the loaded value is an address; ``table``: it is an index into a table that stays where it is.
LoadChain = Literal["pointer", "table"]

_LOADS: Final = re.compile(r"mov(?:zx|sx|sxd)?|cmov\w+")
_PASSES: Final = re.compile(
    r"mov(?:zx|sx|sxd|abs)?|cmov\w+|lea|add|sub|and|or|xor|imul|shl|sal|shr|sar|inc|dec|neg|not|bswap|movabs"
)
_REGISTER: Final = re.compile(r"\b[a-z][a-z0-9]*")
_SEGMENT: Final = re.compile(r"[c-gs]s:")
_STACK: Final = frozenset({"rsp", "rbp", "rip"})


class _Way(NamedTuple):
    """The way of a value since the iteration began: the loads on it, and whether each was at the value itself."""

    loads: int
    direct: bool


_Ways = dict[str, _Way]


def find_load_chain(body: Sequence[Instruction]) -> LoadChain | None:
    """Return how an iteration's address depends on a load of the iteration before, None where it does not.

    Values are followed through moves and integer arithmetic, in the order of the code: of a node's two successors, the
    one that is loaded last counts. Values in the frame count as those in registers.
    """
    written = find_writes(body)
    known: dict[str, _Ways] = {}
    for one in body:
        if not one.operands or one.jumps or one.mnemonic in ("cmp", "test"):
            continue
        target = _name_place(one.operands[0])
        passes = _PASSES.fullmatch(one.mnemonic) is not None and not (one.mnemonic == "imul" and len(one.operands) == 1)
        ways = _follow(one, known, written) if passes else {}
        for register in find_writes((one,)):
            known[register] = {}
        if target is not None:
            known[target] = ways
    found = [way for register, ways in known.items() if (way := ways.get(register)) is not None and way.loads]
    if not found:
        return None
    return "pointer" if any(way.direct for way in found) else "table"


def address_registers(operand: str) -> tuple[str, ...]:
    """Return the registers that make up the address of an operand in memory, its base first."""
    inside = _SEGMENT.sub("", operand.partition("[")[2]).rstrip("]")
    return tuple(whole_register(name) for name in _REGISTER.findall(inside))


def _follow(one: Instruction, known: Mapping[str, _Ways], written: Mapping[str, int]) -> _Ways:
    """Return the ways of the value that an instruction computes."""
    keeps = one.mnemonic not in ("lea",) and not one.mnemonic.startswith("mov") and len(one.operands) < 3
    clears = one.mnemonic in ("xor", "sub") and len(one.operands) == 2 and one.operands[0] == one.operands[1]
    if clears:
        return {}
    found: _Ways = {}
    for operand in one.operands[0 if keeps else 1 :]:
        place = _name_place(operand)
        if place is not None:
            _merge(found, _ways_of(place, known))
        elif one.mnemonic == "lea":
            for register in address_registers(operand):
                _merge(found, _ways_of(register, known))
        elif "[" in operand:
            registers = address_registers(operand)
            fixed = [register for register in registers if register not in written and register not in known]
            for register in registers:
                direct = _LOADS.fullmatch(one.mnemonic) is not None and not fixed and register == registers[0]
                ways = _ways_of(register, known).items()
                _merge(found, {entry: _Way(way.loads + 1, way.direct and direct) for entry, way in ways})
    return found


def _ways_of(place: str, known: Mapping[str, _Ways]) -> Mapping[str, _Way]:
    return known.get(place, {place: _Way(0, direct=True)})


def _merge(found: _Ways, more: Mapping[str, _Way]) -> None:
    for entry, way in more.items():
        before = found.get(entry, way)
        found[entry] = _Way(max(before.loads, way.loads), before.direct or way.direct)


def _name_place(operand: str) -> str | None:
    """Return the name of a register, or of a place in the frame; None for other memory and for numbers."""
    if "[" not in operand:
        return whole_register(operand) if _REGISTER.fullmatch(operand) else None
    registers = address_registers(operand)
    return operand.partition("[")[2] if registers and set(registers) <= _STACK - {"rip"} else None
