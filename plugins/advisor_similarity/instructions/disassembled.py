"""The part of capstone's objects that the decoders use; capstone has no type annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Place(Protocol):
    """An address: registers by number, 0 for none."""

    segment: int
    base: int
    index: int


class Operand(Protocol):
    """One operand; what is read or written as ``access`` says."""

    type: int
    access: int
    reg: int
    mem: Place


class Disassembled(Protocol):
    """One instruction."""

    mnemonic: str
    operands: Sequence[Operand]
    regs_read: Sequence[int]
    regs_write: Sequence[int]
    eflags: int

    def reg_name(self, register: int) -> str | None:
        """Return the name of a register."""
