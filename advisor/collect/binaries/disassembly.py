"""Instructions of a piece of code as mnemonic and operands in Intel's syntax: by capstone, else by objdump."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from advisor.model.errors import UsageError
from advisor.support.child_process import run_child
from advisor.support.extras import install_line

if TYPE_CHECKING:
    from capstone import Cs

    from advisor.collect.binaries.elf_files import ElfImage

X86_64: Final = "EM_X86_64"
_LIMIT_S: Final = 60.0
_LINE: Final = re.compile(r"\s*([0-9a-f]+):\t([0-9a-f ]+)(?:\t(\S+)\s*([^#<]*))?")
_PREFIXES: Final = ("lock", "rep", "repz", "repnz", "bnd", "notrack", "data16", "cs")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; operands in lower case without spaces around signs and commas, such as ``qword ptr [rbp-24]``.

    ``target`` is where a jump or call goes that names its target.
    """

    address: int
    size: int
    mnemonic: str
    operands: tuple[str, ...]
    target: int | None = None

    @property
    def memory(self) -> str | None:
        """The operand that is in memory, None where none is; the address that ``lea`` computes is none."""
        if self.mnemonic == "lea" or self.mnemonic.startswith(("nop", "prefetch")):
            return None
        return next((one for one in self.operands if "[" in one), None)

    @property
    def jumps(self) -> bool:
        """Whether it may go on elsewhere and does not come back."""
        return self.mnemonic.startswith("j")


def disassemble(image: ElfImage, begin: int, end: int) -> tuple[Instruction, ...]:
    """Return the instructions from ``begin`` to ``end``, addresses as linked.

    Raises ``UsageError`` for another processor than x86-64, and where neither capstone nor objdump is installed.
    """
    if image.machine != X86_64:
        raise UsageError(f"{image.path.name} is for {image.machine}: only code for x86-64 is looked into")
    decoder = _load_decoder()
    if decoder is not None:
        rows: Iterator[tuple[int, int, str, str]] = decoder.disasm_lite(image.read_code(begin, end), begin)
        return tuple(_make_instruction(*row) for row in rows)
    program = shutil.which("objdump")
    if program is None:
        raise UsageError(f"neither capstone nor objdump is installed: {install_line('processor')}")
    return tuple(_make_instruction(*row) for row in _ask_objdump(program, image, begin, end))


def can_disassemble() -> bool:
    """Return whether there is anything to disassemble with."""
    return _load_decoder() is not None or shutil.which("objdump") is not None


@cache
def _load_decoder() -> Cs | None:
    try:
        from capstone import CS_ARCH_X86, CS_MODE_64, Cs
    except ImportError:
        return None
    decoder = Cs(CS_ARCH_X86, CS_MODE_64)
    decoder.skipdata = True
    return decoder


def _ask_objdump(program: str, image: ElfImage, begin: int, end: int) -> Iterator[tuple[int, int, str, str]]:
    words = [program, "-d", "-M", "intel", "-w", f"--start-address={begin}", f"--stop-address={end}", str(image.path)]
    for line in run_child(words, _LIMIT_S).text.splitlines():
        found = _LINE.match(line)
        if found and found[3]:
            yield int(found[1], 16), len(found[2].split()), found[3], found[4] or ""


def _make_instruction(address: int, size: int, mnemonic: str, text: str) -> Instruction:
    words = f"{mnemonic} {text}".lower().split()
    while len(words) > 1 and words[0] in _PREFIXES and words[0] != "lock":
        words = words[1:]
    if words[0] == "lock" and len(words) > 1:
        words = [f"lock {words[1]}", *words[2:]]
    name, rest = words[0], re.sub(r"\s*([-+*,])\s*", r"\1", " ".join(words[1:]))
    operands = tuple(one for one in re.split(r",(?![^\[]*\])", rest) if one)
    target = None
    if (name.startswith("j") or name == "call") and len(operands) == 1 and "[" not in operands[0]:
        target = _read_number(operands[0])
    return Instruction(address, size, name, operands, target)


def _read_number(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def split_pieces(code: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Yield the pieces of code between labels, jumps and returns."""
    labels = {one.target for one in code if one.jumps}
    piece: list[Instruction] = []
    for one in code:
        if piece and one.address in labels:
            yield piece
            piece = []
        piece.append(one)
        if one.jumps or one.mnemonic == "ret":
            yield piece
            piece = []
    if piece:
        yield piece
