"""The part of capstone's objects that the decoders use; capstone has no type annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from advisor_similarity.steps import FINE_INDEX, OPERATE, Step, Template

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


#: Bytes that the disassembler does not know: one operation, outside of the centroid.
UNKNOWN: Final = Template("?", (Step(OPERATE, FINE_INDEX["unknown"]),), is_known=False)
_PLACE: Final = 0x1000


class MemoryOperand(Protocol):
    """An address: registers by number, 0 for none."""

    segment: int
    base: int
    index: int


class Operand(Protocol):
    """One operand; what is read or written as ``access`` says."""

    type: int
    access: int
    reg: int
    mem: MemoryOperand


class CapstoneInstruction(Protocol):
    """One instruction."""

    mnemonic: str
    operands: Sequence[Operand]
    regs_read: Sequence[int]
    regs_write: Sequence[int]
    eflags: int

    def reg_name(self, register: int) -> str | None:
        """Return the name of a register."""


class Disassembler(Protocol):
    """capstone's ``Cs``."""

    def disasm(self, code: bytes, offset: int) -> Iterable[CapstoneInstruction]:
        """Yield the instructions of ``code``."""


def first_instruction(disassembler: Disassembler, code: bytes) -> CapstoneInstruction | None:
    """Return the first instruction of ``code``, None where the disassembler does not know it."""
    return next(iter(disassembler.disasm(code, _PLACE)), None)


def class_or_unknown(found: int | None) -> int:
    """Return a mnemonic's class, that of unknown ones where it is in no known group."""
    return FINE_INDEX["unknown"] if found is None else found


def hide_locations(steps: Iterable[Step], hidden: frozenset[int]) -> tuple[Step, ...]:
    """Return the steps without the reading of places that are to be always available."""
    return tuple(
        Step(step.kind, step.fine, tuple(place for place in step.reads if place not in hidden), step.writes,
             step.if_touched)
        for step in steps
    )  # fmt: skip
