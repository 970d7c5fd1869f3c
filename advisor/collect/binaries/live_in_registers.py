"""Whether a function keeps values in registers from one straight piece of its code to the next (x86-64).

Compilers without optimization keep every variable in memory: each piece of code between jumps loads what it needs. With
optimization, counters, pointers and sums stay in registers. Where variables live does not tell as much: optimized code
that runs out of registers also goes to its frame most of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.disassembly import split_pieces
from advisor.collect.binaries.registers import has_frame_pointer, whole_register

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

_REGISTER: Final = re.compile(r"r[a-z]{2}|r\d+|v\d+")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*")
#: Registers that say nothing: stack and frame, and what functions return and conditional expressions pass on.
_OTHERS: Final = frozenset({"rsp", "rbp", "rip", "rax", "v0"})
#: Instructions whose first operand is only written.
_SETS: Final = re.compile(r"v?mov(?!s[ds]$).*|v?movs[ds]|lea|set\w+|v?cvt.*|pop|v?sqrt.*|v?(?:p?broadcast|extract).*")
_CLEARS: Final = frozenset({"xor", "pxor", "xorps", "xorpd", "sub"})


def share_of_live_in_pieces(code: Sequence[Instruction]) -> float:
    """Return the share of the pieces behind labels and jumps that read a register before they set it.

    ``code`` is one function; its first piece, which reads parameters, does not count. Code in one piece is told by the
    frame pointer, which only compilers that optimize do without: 0 with one, 1 without.
    """
    pieces = list(split_pieces(code))[1:]
    if not pieces:
        return 0.0 if has_frame_pointer(code) else 1.0
    return sum(map(_reads_first, pieces)) / len(pieces)


def _reads_first(piece: Sequence[Instruction]) -> bool:
    """Return whether a piece of code reads a register before it sets it."""
    known = set(_OTHERS)
    for one in piece:
        if one.mnemonic == "call":
            return False  # behind it parameters and results are in registers for other reasons
        if one.jumps or not one.operands or one.mnemonic.startswith(("nop", "endbr", "push")):
            continue
        target = one.operands[0]
        clears = one.mnemonic.removeprefix("v") in _CLEARS and len({*one.operands[-2:]}) == 1
        sets = "[" not in target and (
            clears or _SETS.fullmatch(one.mnemonic) is not None or (len(one.operands) > 2 and "fm" not in one.mnemonic)
        )
        read = () if clears else one.operands[1:] if sets else one.operands
        if any(register not in known for operand in read for register in _registers(operand)):
            return True
        if "[" not in target:
            known.add(whole_register(target))
        if one.mnemonic in ("cqo", "cdq", "mul", "div", "idiv", "imul"):
            known.add("rdx")
    return False


def _registers(operand: str) -> Iterator[str]:
    names = (whole_register(name) for name in _NAME.findall(operand))
    return (name for name in names if _REGISTER.fullmatch(name))
