"""x86-64: instructions as load, operate and store steps, from what capstone knows about them.

What capstone says is put right where it is known to be wrong: stores that it calls loads, registers and flags that
compare-and-exchange writes. A move from or to memory is one step, any other instruction with a memory operand is
split. Scalar floating-point instructions read and write the low 64 bits of a vector register only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from capstone import CS_AC_READ, CS_AC_WRITE, CS_ARCH_X86, CS_MODE_64, x86_const

from advisor_similarity.instructions.capstone_types import (
    CapstoneDecoder,
    CapstoneInstruction,
    Operand,
    class_or_unknown,
    hide_locations,
)
from advisor_similarity.instructions.x86_tables import (
    EXTENDED,
    FLAG_READS,
    FLAG_WRITES,
    IMPLIED_READS,
    IMPLIED_WRITES,
    LOCATIONS,
    NOTHING,
    fine_class,
)
from advisor_similarity.steps import (
    CARRY,
    DIRECTION,
    FINE_INDEX,
    GENERAL,
    LOAD,
    LOADED,
    LOW_BYTE,
    MASKS,
    OPERATE,
    OVERFLOW,
    RESULT,
    STORE,
    VECTOR_LOW,
    X87,
    ZERO_SIGN,
    Step,
    Template,
)

_STACK: Final = 7
_MOVES: Final = re.compile(
    r"mov(abs|zx|sxd?|be|nti|s[bwdq])?|v?mov([ahlun]\w*p[sd]|[dq]|dq\w+|nt\w+|s[sd]|ddup|s[lh]dup)|v?lddqu|"
    r"v?broadcasts[sd]|v(p?broadcast)\w+|jmp|v?(ld|st)mxcsr|fn?stcw|fldcw|set\w+"
)
_WRITES_MEMORY: Final = re.compile(
    r"v?mov\w*|v?stmxcsr|fn?st\w*|fist\w*|fbstp|fxsave\w*|xsave\w*|v?p?extr\w+|v?extract\w+|v?maskmov\w+|"
    r"v?p?scatter\w+|vcvtps2ph|sgdt|sidt"
)
_SCALAR: Final = re.compile(
    r"v?(add|sub|mul|div|min|max|sqrt|u?comi|cmp\w*|fn?m(add|sub)\w+|round|cvt\w+2|rcp|rsqrt)s[sd]|v?cvtt?s[sd]2\w+"
)
_NO_INPUT: Final = re.compile(r"xor|sub|v?p?xor[pdq]?[sd]?|v?psub[bwdq]|v?pcmpeq[bwdq]|v?pcmpgt[bwdq]|v?xorp[sd]")
_STRING: Final = re.compile(r"(movs|stos|lods|cmps|scas)[bwdq]")
_PREFIX: Final = re.compile(r"(rep\w*|lock|notrack|bnd|xacquire|xrelease|data16|addr32)\s+")


class X86Decoder(CapstoneDecoder):
    """Decodes x86-64."""

    def __init__(self, follow_stack: bool = True) -> None:
        super().__init__(CS_ARCH_X86, CS_MODE_64, _STACK, follow_stack)

    def _build_template(self, insn: CapstoneInstruction) -> Template:
        full = f"{insn.mnemonic}"
        mnemonic = _PREFIX.sub("", full)
        if mnemonic in NOTHING:
            return Template(mnemonic, ())
        return _X86Instruction(insn, mnemonic, full, self._hidden).build_template()


class _X86Instruction:
    """One instruction on its way to steps."""

    def __init__(self, insn: CapstoneInstruction, mnemonic: str, full: str, hidden: frozenset[int]) -> None:
        self.insn, self.mnemonic, self.full, self.hidden = insn, mnemonic, full, hidden
        found = fine_class(mnemonic)
        self.known = found is not None
        self.fine = class_or_unknown(found)
        self.operands = list(insn.operands)
        self.loads, self.stores = self._memory_access()

    def build_template(self) -> Template:
        """Return all steps."""
        if self.mnemonic == "lea":
            return self._make_template(self._operate_step(self._address_locations(), self._written_locations()))
        if self.mnemonic.startswith("prefetch"):
            return Template(self.mnemonic, ())
        return self._make_template(*self._stack_steps() or self._build_steps())

    def _make_template(self, *steps: Step) -> Template:
        quiet = self.full.startswith("rep") and self._is_string()
        kept = (replace(step, if_touched=quiet) for step in steps)
        return Template(self.mnemonic, hide_locations(kept, self.hidden), self.known)

    def _operate_step(self, reads: Iterable[int], writes: Iterable[int]) -> Step:
        return Step(OPERATE, self.fine, tuple(reads), tuple(writes))

    def _memory_access(self) -> tuple[bool, bool]:
        """Return whether memory is read, and whether it is written."""
        places = [
            (number, operand) for number, operand in enumerate(self.operands) if operand.type == x86_const.X86_OP_MEM
        ]
        loads = any(operand.access & CS_AC_READ for _, operand in places)
        stores = any(operand.access & CS_AC_WRITE for _, operand in places)
        first = bool(places) and places[0][0] == 0
        if first and _WRITES_MEMORY.fullmatch(self.mnemonic) and not self.mnemonic.startswith("movs") and not stores:
            loads, stores = False, True
        if first and self.mnemonic.startswith("set"):
            loads, stores = False, True
        if first and self.mnemonic.startswith(("cmpxchg", "xadd", "xchg")):
            loads = stores = True
        if places and not loads and not stores:
            loads = True
        return loads, stores

    def _address_locations(self) -> list[int]:
        places: list[int] = []
        for operand in self.operands:
            if operand.type == x86_const.X86_OP_MEM:
                parts = (operand.mem.segment, operand.mem.base, operand.mem.index)
                places += [place for part in parts if part for place in self._find_locations(part)]
        return places

    def _find_locations(self, register: int) -> tuple[int, ...]:
        return LOCATIONS.get(self.insn.reg_name(register) or "", ())

    def _register_operands(self) -> list[Operand]:
        return [operand for operand in self.operands if operand.type == x86_const.X86_OP_REG]

    def _read_locations(self) -> list[int]:
        """Return the registers and flags that are read as values, without those of addresses."""
        if self._is_zero_idiom():
            return []
        explicit = [place for operand in self._register_operands() if self._is_read(operand)
                    for place in self._select_lanes(self._find_locations(operand.reg), source=True)]  # fmt: skip
        implicit = [place for register in self.insn.regs_read for place in self._find_locations(register)]
        implicit += IMPLIED_READS.get(self.mnemonic, [X87] if self.fine == EXTENDED else [])
        return [*explicit, *implicit, *self._flag_locations(FLAG_READS)]

    def _is_read(self, operand: Operand) -> bool:
        if operand.access & CS_AC_READ or not operand.access:
            return True
        first = operand is self.operands[0]
        merges = re.fullmatch(r"cvtsi2s[sd]|cmov\w+|v?pins\w+", self.mnemonic) is not None and not self._is_low_only()
        return first and merges

    def _is_low_only(self) -> bool:
        return _SCALAR.fullmatch(self.mnemonic) is not None

    def _select_lanes(self, places: tuple[int, ...], source: bool) -> tuple[int, ...]:
        """Return the parts of a vector register that the instruction works on."""
        if len(places) != 2 or places[0] >= LOW_BYTE:
            return places
        name = self.mnemonic.removeprefix("v")
        both_registers = all(operand.type == x86_const.X86_OP_REG for operand in self.operands)
        low = self._is_low_only() or (name in ("movss", "movsd") and (source or both_registers))
        low = low or (name in ("movlpd", "movlps", "movddup", "movd") and (source or name.startswith("movl")))
        low = low or (name == "movq" and source)
        if low:
            return places[:1]
        return places[1:] if name in ("movhpd", "movhps") else places

    def _is_zero_idiom(self) -> bool:
        sources = self.operands[-2:]
        registers = {operand.reg for operand in sources if operand.type == x86_const.X86_OP_REG}
        return len(sources) == 2 and len(registers) == 1 and sources[0].type == sources[1].type and (
            _NO_INPUT.fullmatch(self.mnemonic) is not None
        )  # fmt: skip

    def _written_locations(self) -> list[int]:
        explicit = [place for operand in self._register_operands() if operand.access & CS_AC_WRITE
                    for place in self._select_lanes(self._find_locations(operand.reg), source=False)]  # fmt: skip
        implicit = [place for register in self.insn.regs_write for place in self._find_locations(register)]
        implicit += IMPLIED_WRITES.get(self.mnemonic, [X87] if self.fine == EXTENDED else [])
        return [*explicit, *implicit, *self._flag_locations(FLAG_WRITES)]

    def _flag_locations(self, masks: tuple[tuple[int, int], ...]) -> list[int]:
        if self.mnemonic == "syscall":
            return []
        if self.fine == EXTENDED and not re.fullmatch(r"fu?comip?|fcmov\w+", self.mnemonic):
            return []
        if self.mnemonic in ("sahf", "popfq", "popf"):
            return [CARRY, OVERFLOW, ZERO_SIGN] if masks is FLAG_WRITES else []
        if self.mnemonic in ("lahf", "pushfq", "pushf"):
            return [CARRY, OVERFLOW, ZERO_SIGN] if masks is FLAG_READS else []
        return list(dict.fromkeys(place for mask, place in masks if self.insn.eflags & mask))

    def _build_steps(self) -> list[Step]:
        """Return load, operate and store of an ordinary instruction."""
        address, reads, writes = self._address_locations(), self._read_locations(), self._written_locations()
        if self._is_string():
            return self._string_steps(reads, writes)
        if not (self.loads or self.stores):
            return [self._operate_step(reads, writes)]
        load = Step(LOAD, FINE_INDEX["load"], tuple(address), (LOADED,))
        if _MOVES.fullmatch(self.mnemonic) and not (self.loads and self.stores):
            if self.loads:
                if self.fine == FINE_INDEX["branch jump"]:
                    return [load, self._operate_step([LOADED], [])]
                return [Step(LOAD, load.fine, (*address, *self._merged_locations(reads)), tuple(writes))]
            if self.mnemonic.startswith("set"):
                return [self._operate_step(reads, [RESULT]), Step(STORE, FINE_INDEX["store"], (*address, RESULT))]
            return [Step(STORE, FINE_INDEX["store"], (*address, *reads))]
        steps = [load] if self.loads else []
        taken = [*reads, LOADED] if self.loads else reads
        steps.append(self._operate_step(taken, [*writes, RESULT] if self.stores else writes))
        if self.stores:
            steps.append(Step(STORE, FINE_INDEX["store"], (*address, RESULT)))
        return steps

    def _is_string(self) -> bool:
        """Tell ``movsd`` and ``cmpsd`` of memory at rsi and rdi from those of vector registers."""
        places = (place for operand in self._register_operands() for place in self._find_locations(operand.reg))
        vectors = any(VECTOR_LOW <= place < MASKS for place in places)
        return _STRING.fullmatch(self.mnemonic) is not None and not vectors

    @staticmethod
    def _merged_locations(reads: list[int]) -> list[int]:
        return [place for place in reads if place < VECTOR_LOW and place >= LOW_BYTE]

    def _string_steps(self, reads: list[int], writes: list[int]) -> list[Step]:
        """Return one round of a string instruction; a repeated one moves its elements side by side and counts none."""
        pointers = [place for place in dict.fromkeys(writes) if place in (GENERAL + 5, GENERAL + 4, GENERAL + 2)]
        values = [place for place in reads if place not in pointers and place not in (4, 5)]
        steps: list[Step] = []
        add, moves = FINE_INDEX["int add"], self.mnemonic[:4]
        if moves != "stos":
            sources = (4, 5) if moves == "cmps" else (5,) if moves == "scas" else (4,)
            to = (LOADED,) if moves != "lods" else tuple(place for place in writes if place not in pointers)
            steps.append(Step(LOAD, FINE_INDEX["load"], sources, to))
        if moves in ("movs", "stos"):
            steps.append(Step(STORE, FINE_INDEX["store"], (5, LOADED) if moves == "movs" else (5, *values)))
        if moves in ("cmps", "scas"):
            flags = [place for place in writes if place in (CARRY, OVERFLOW, ZERO_SIGN)]
            steps.append(self._operate_step([LOADED, *(values if moves == "scas" else ())], flags))
        if self.full.startswith("rep"):
            return steps
        return steps + [Step(OPERATE, add, (pointer, DIRECTION), (pointer,)) for pointer in pointers]

    def _stack_steps(self) -> list[Step] | None:
        """Return the steps of instructions that push and pop, None for others."""
        add, load, store = FINE_INDEX["int add"], FINE_INDEX["load"], FINE_INDEX["store"]
        moved = Step(OPERATE, add, (_STACK,), (_STACK,))
        address, name = tuple(self._address_locations()), self.mnemonic
        values = tuple(place for place in self._read_locations() if place != _STACK)
        if name.startswith("push"):
            first = [Step(LOAD, load, address, (LOADED,))] if self.loads else []
            return [*first, moved, Step(STORE, store, (_STACK, *((LOADED,) if first else values)))]
        if name.startswith("pop") and name != "popcnt":
            written = tuple(place for place in self._written_locations() if place != _STACK)
            last = [Step(STORE, store, (*address, LOADED))] if self.stores else []
            return [Step(LOAD, load, (_STACK,), (LOADED,) if last else written or (LOADED,)), moved, *last]
        if name == "call":
            first = [Step(LOAD, load, address, (LOADED,))] if self.loads else []
            return [
                *first,
                moved,
                Step(STORE, store, (_STACK,)),
                self._operate_step((LOADED,) if first else values, ()),
            ]
        if name.startswith("ret"):
            return [Step(LOAD, load, (_STACK,), (LOADED,)), moved, self._operate_step((LOADED,), ())]
        if name == "leave":
            return [Step(LOAD, load, (6,), (6,)), Step(OPERATE, add, (6,), (_STACK,))]
        return None
