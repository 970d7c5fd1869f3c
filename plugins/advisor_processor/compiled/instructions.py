"""Machine code -> what each instruction reads, writes and occupies, by capstone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from capstone import Cs, CsInsn

#: Mnemonics without their leading ``v`` and without ``ps``, ``pd``, ``ss``, ``sd``, by unit.
_FLOATING: Final = re.compile(
    r"v?(?:(?P<fp_fma>fn?m(?:add|sub)(?:add|sub)?\d{3})"
    r"|(?P<fp_add>addsub|add|sub|haddp?|hsubp?|min|max|u?comi|cmp\w*)"
    r"|(?P<fp_mul>mul|dp|rcp|rsqrt)"
    r"|(?P<fp_div>div|sqrt))(?P<type>[ps][sdh])"
)
_X87: Final = re.compile(r"f(?:i?(?P<fp_add>add|subr?)|i?(?P<fp_mul>mul)|i?(?P<fp_div>divr?)|(?P<root>sqrt))p?i?")
_INTEGER: Final = frozenset({
    "add", "sub", "and", "or", "xor", "lea", "inc", "dec", "neg", "not", "shl", "sal", "shr", "sar", "rol", "ror",
    "rcl", "rcr", "cmp", "test", "imul", "mul", "adc", "sbb", "bt", "bts", "btr", "btc", "cdq", "cdqe", "cqo", "cwde",
    "popcnt", "lzcnt", "tzcnt", "andn", "blsr", "blsi", "bextr", "shlx", "shrx", "sarx", "rorx", "mulx", "bswap",
    "movsx", "movsxd", "movzx", "bsf", "bsr", "shld", "shrd", "cmpxchg", "xadd",
})  # fmt: skip
_SETTING: Final = re.compile(r"(set|cmov)[a-z]+")
#: Copies that the front end of a core can make disappear.
COPIES: Final = re.compile(r"mov|v?mov(ap|up|dq|ddup)\w*")

_ZEROING: Final = ("xor", "xorps", "xorpd", "pxor", "sub", "psub")
#: Instructions that only write their first operand where it is in memory, and those that read it as well.
_STORES: Final = re.compile(
    r"mov|set|extract|pextr|maskmov|pmaskmov|compress|pcompress|cvtps2ph|st|scatter|pscatter|f(i|b)?st"
)
_UPDATES: Final = frozenset({
    "add", "sub", "and", "or", "xor", "inc", "dec", "neg", "not", "shl", "shr", "sar", "sal", "rol", "ror", "rcl",
    "rcr", "adc", "sbb", "xchg", "xadd", "cmpxchg", "bts", "btr", "btc",
})  # fmt: skip
#: Registers that point into a function's own frame.
_STACK: Final = ("rsp", "rbp")
_PARTS: Final = {
    part: whole
    for letter in "abcd"
    for whole, parts in ((f"r{letter}x", (f"e{letter}x", f"{letter}x", f"{letter}l", f"{letter}h")),)
    for part in parts
} | {part: f"r{name}" for name in ("si", "di", "bp", "sp") for part in (f"e{name}", name, f"{name}l")}


@dataclass(frozen=True, slots=True)
class MemoryOperand:
    """An address in memory, ``base + index * scale + displacement``, and how many bytes are accessed there."""

    base: str
    index: str
    scale: int
    displacement: int
    size: int

    @property
    def registers(self) -> frozenset[str]:
        """The registers that the address is computed from."""
        return frozenset(name for name in (self.base, self.index) if name)

    @property
    def is_on_stack(self) -> bool:
        """Whether it is a place in the function's own frame."""
        return self.base in _STACK and not self.index


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; registers by the name of the whole register, ``flags`` among them.

    ``unit`` computes; loads and stores count beside it. ``data`` are the registers read as numbers, not as parts of an
    address. ``step`` is the register that is advanced by a constant, and by how much.
    """

    address: int
    size: int
    mnemonic: str
    operands: str
    unit: str | None
    packed: bool
    bits: int
    data: frozenset[str]
    writes: frozenset[str]
    load: MemoryOperand | None
    store: MemoryOperand | None
    elements: int
    step: tuple[str, int] | None
    target: int | None
    conditional: bool
    copy: bool
    returns: bool

    @property
    def end(self) -> int:
        """The address of the next instruction."""
        return self.address + self.size

    @property
    def text(self) -> str:
        """The instruction as an assembler takes it (Intel's syntax)."""
        return f"{self.mnemonic} {self.operands}".strip()


def decode_instructions(code: bytes, address: int) -> Iterator[Instruction]:
    """Yield the instructions of ``code``, which begins at ``address``; bytes that are none are skipped."""
    decoder = _make_decoder()
    offset = 0
    while offset < len(code):
        end = offset
        for found in decoder.disasm(code[offset:], address + offset):
            yield _convert_instruction(found)
            end = found.address + found.size - address
        offset = end + 1 if end < len(code) else end


@lru_cache(maxsize=1)
def _make_decoder() -> Cs:
    from capstone import CS_ARCH_X86, CS_MODE_64, Cs

    decoder = Cs(CS_ARCH_X86, CS_MODE_64)
    decoder.detail = True
    return decoder


def _convert_instruction(found: CsInsn) -> Instruction:
    from capstone import CS_AC_READ, CS_GRP_CALL, CS_GRP_JUMP, CS_GRP_RET
    from capstone.x86 import X86_OP_IMM, X86_OP_MEM, X86_OP_REG

    operands = found.operands
    unit, packed = find_unit(found.mnemonic)
    jump, call = found.group(CS_GRP_JUMP), found.group(CS_GRP_CALL)
    memory = (
        None if found.mnemonic.startswith(("lea", "nop", "prefetch")) or jump or call else _find_memory_operand(found)
    )
    first = bool(operands) and operands[0].type == X86_OP_MEM
    read, written = classify_access(found.mnemonic, first) if memory else (False, False)
    registers = [_full_register(found, op.reg) for op in operands if op.type == X86_OP_REG]
    reads, writes = (frozenset(_full_register(found, each) for each in names) for names in found.regs_access())
    data = reads - memory.registers if memory else reads
    if memory:
        data |= frozenset(
            _full_register(found, op.reg) for op in operands if op.type == X86_OP_REG and op.access & CS_AC_READ
        )
    if _is_zeroing(found.mnemonic, registers):
        data -= {registers[0]}
    return Instruction(
        address=found.address,
        size=found.size,
        mnemonic=found.mnemonic,
        operands=found.op_str,
        unit=unit,
        packed=packed,
        bits=_operand_bits(found),
        data=data,
        writes=writes,
        load=memory if read else None,
        store=memory if written else None,
        elements=_count_elements(found) if is_gather(found.mnemonic) else 1,
        step=_find_step(found, registers),
        target=operands[0].imm if jump and operands and operands[0].type == X86_OP_IMM else None,
        conditional=jump and found.mnemonic != "jmp",
        copy=bool(COPIES.fullmatch(found.mnemonic)) and memory is None,
        returns=found.group(CS_GRP_RET),
    )


def classify_access(mnemonic: str, first: bool) -> tuple[bool, bool]:
    """Return whether a memory operand is read and written; ``first`` where it is the first operand.

    Told by the mnemonic: capstone calls many stores of vectors loads.
    """
    word = mnemonic.removeprefix("lock ").removeprefix("v")
    if not first:
        return True, word in ("xchg", "xadd")
    if _STORES.match(word):
        return False, True
    return True, word in _UPDATES


def _full_register(found: CsInsn, register: int) -> str:
    """Return the name of the whole register that ``register`` is a part of."""
    name: str = found.reg_name(register) or ""
    if name[1:3] == "mm" and name[0] in "xyz":
        return f"v{name[3:]}"
    if name in ("rflags", "eflags", "flags"):
        return "flags"
    if name[:1] == "r" and name[1:2].isdigit():
        return name.rstrip("dwb")
    return _PARTS.get(name, name)


def _find_memory_operand(found: CsInsn) -> MemoryOperand | None:
    from capstone.x86 import X86_OP_MEM

    for op in found.operands:
        if op.type == X86_OP_MEM:
            base, index = (_full_register(found, each) if each else "" for each in (op.mem.base, op.mem.index))
            shift = found.address + found.size if base == "rip" else 0
            return MemoryOperand("" if base == "rip" else base, index, op.mem.scale, op.mem.disp + shift, op.size)
    return None


def _operand_bits(found: CsInsn) -> int:
    """Return the bits of the widest vector register or memory operand."""
    from capstone.x86 import X86_OP_MEM, X86_OP_REG

    widths = {"x": 128, "y": 256, "z": 512}
    bits = 64
    for op in found.operands:
        name = found.reg_name(op.reg) if op.type == X86_OP_REG else ""
        if name and name[1:3] == "mm":
            bits = max(bits, widths.get(name[0], 64))
        elif op.type == X86_OP_MEM and not found.mnemonic.startswith("lea"):
            bits = max(bits, min(op.size * 8, 512))
    return bits if not found.mnemonic.endswith(("sd", "ss")) else 64


def _count_elements(found: CsInsn) -> int:
    """Return how many numbers a gather loads: those that its destination holds."""
    return max(_operand_bits(found) // (64 if found.mnemonic.endswith(("pd", "qq", "dq")) else 32), 1)


def _is_zeroing(mnemonic: str, registers: list[str]) -> bool:
    word = mnemonic.removeprefix("v")
    return word.startswith(_ZEROING) and len(registers) > 1 and len(set(registers)) == 1


def _find_step(found: CsInsn, registers: list[str]) -> tuple[str, int] | None:
    from capstone.x86 import X86_OP_IMM, X86_OP_MEM

    operands, word = found.operands, found.mnemonic
    if word in ("inc", "dec") and len(registers) == 1:
        return registers[0], 1 if word == "inc" else -1
    if word in ("add", "sub") and len(registers) == 1 and operands[1].type == X86_OP_IMM:
        return registers[0], operands[1].imm if word == "add" else -operands[1].imm
    if word == "lea" and operands[1].type == X86_OP_MEM and not operands[1].mem.index and operands[1].mem.base:
        place = operands[1].mem
        if _full_register(found, place.base) == registers[0]:
            return registers[0], place.disp
    return None


def find_unit(mnemonic: str) -> tuple[str | None, bool]:
    """Return the unit that an instruction computes in, if it is one of the model's, and whether it is a vector's."""
    word = mnemonic.removeprefix("lock ").removeprefix("rep ")
    if found := _FLOATING.fullmatch(word):
        unit = next(name for name in ("fp_fma", "fp_add", "fp_mul", "fp_div") if found[name])
        return unit, found["type"][0] == "p"
    if found := _X87.fullmatch(word):
        return next((name for name in ("fp_add", "fp_mul", "fp_div") if found[name]), "fp_div"), False
    if word in _INTEGER or _SETTING.fullmatch(word):
        return "int", False
    return None, False


def is_gather(mnemonic: str) -> bool:
    """Return whether an instruction loads from several places."""
    return "gather" in mnemonic
