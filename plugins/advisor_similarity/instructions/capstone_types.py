"""The part of capstone's objects that the decoders use; capstone has no type annotations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from capstone import Cs

from advisor_similarity.steps import FINE_INDEX, OPERATE, Step, Template

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


class CapstoneDecoder(ABC):
    """Decodes what capstone disassembles. ``stack`` is the location of the stack pointer.

    One object decodes a run, as equal bytes always mean the same.
    """

    def __init__(self, architecture: int, mode: int, stack: int, follow_stack: bool) -> None:
        self._disassembler = Cs(architecture, mode)
        self._disassembler.detail = True
        self._hidden = frozenset() if follow_stack else frozenset((stack,))

    def decode_instruction(self, code: bytes) -> Template:
        """Return what the instruction does; see ``Decoder``."""
        insn = next(iter(self._disassembler.disasm(code, _PLACE)), None)
        return UNKNOWN if insn is None else self._build_template(insn)

    @abstractmethod
    def _build_template(self, insn: CapstoneInstruction) -> Template:
        """Return what an instruction does that capstone knows."""


def build_classifier(groups: Iterable[tuple[str, str]]) -> Callable[[str], int | None]:
    """Return what gives a mnemonic's index into ``classes.FINE``; None for one of no known group.

    ``groups`` are names of classes, each with regular expressions of mnemonics; the first that matches wholly decides.
    """
    patterns = [
        (re.compile("|".join(f"(?:{pattern})" for pattern in words.split())), FINE_INDEX[name])
        for name, words in groups
    ]
    return lambda mnemonic: next((fine for pattern, fine in patterns if pattern.fullmatch(mnemonic)), None)


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
