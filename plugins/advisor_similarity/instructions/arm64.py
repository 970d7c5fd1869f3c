"""AArch64: instructions as load, operate and store steps, from what capstone knows about them.

Only loads and stores touch memory; one that moves its base register along takes an addition besides. Scalar
floating-point instructions read the low 64 bits of a vector register; writing these clears the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from capstone import CS_ARCH_ARM64, CS_MODE_ARM, arm64_const

from advisor_similarity.instructions.capstone_types import (
    CapstoneDecoder,
    CapstoneInstruction,
    Operand,
    build_classifier,
    class_or_unknown,
    hide_locations,
)
from advisor_similarity.steps import (
    CARRY,
    FINE_INDEX,
    FP_CONTROL,
    GENERAL,
    LOAD,
    OPERATE,
    OVERFLOW,
    SEGMENTS,
    STORE,
    VECTOR_LOW,
    VECTOR_REST,
    ZERO_SIGN,
    Step,
    Template,
)

#: Regular expressions of mnemonics, by class; the first class of which one matches wholly decides.
_GROUPS: Final = (
    ("branch conditional", r"b\.\w+ cbn?z tbn?z"),
    ("branch call", r"bl blr blra\w*"),
    ("branch return", r"ret reta\w eret"),
    ("branch jump", r"b br bra\w*"),
    ("load", r"ld\w+ swp\w* cas\w*"),
    ("store", r"st\w+"),
    ("int add", "adds? subs? adcs? sbcs? negs? ngcs? adrp? cinc cinv cneg csinc csneg"),
    ("int compare", "cmp cmn tst ccmp ccmn"),
    (
        "int logic",
        r"ands? orr orn eor eon bics? mvn clz cls rbit ubfx sbfx bfi bfxil ubfm sbfm bfm ubfiz sbfiz crc32\w*",
    ),
    ("int shift", "lslv? lsrv? asrv? rorv? extr"),
    ("int multiply", r"mul mneg madd msub [su]mull [su]mulh [su]maddl [su]msubl [su]mnegl"),
    ("int divide", "[su]div"),
    ("int move", r"mov[znk]? csel csetm? csinv [su]xt[bhw] rev\d* rev"),
    ("fp multiply-add", r"fn?m(add|sub) fml[as]\w*"),
    ("fp add", r"fadd\w* fsub fabd faddp"),
    ("fp multiply", "fn?mul fmulx"),
    ("fp divide", r"fdiv fsqrt frecp\w frsqrt\w"),
    ("fp compare", r"fc?cmpe? fcm\w+ fmax\w* fmin\w* fccmpe?"),
    ("fp convert", r"fcvt\w* [su]cvtf frint\w+"),
    ("fp move", r"fmov fcsel fneg fabs"),
    ("control", r"svc mrs msr dmb dsb isb hvc smc brk hlt yield wfe wfi sev sevl clrex dc ic at tlbi sys sysl"),
    ("int vector", r"(movi|mvni|dup|ins|umov|smov|ext|zip\d|uzp\d|trn\d|tbl|tbx|addv|addp|cnt|bit|bif|bsl|not|xtn2?)"),
    (
        "int vector",
        r"(cm\w+|[su](add|sub|abd|max|min|sh|mla|mls|mul|qadd|qsub|rsh|ra|hadd)\w*|shl\w*|shrn\w*|pmull?2?|mla|mls)",
    ),
    (
        "int vector",
        r"(abs|sqd\w+|sri|sli|aes\w+|sha\w+|rev64|rshrn2?|addhn2?|subhn2?|[su]qxtu?n2?|[su]addlv|sqr\w+|uqr\w+)",
    ),
)
#: The index into ``classes.FINE`` of a mnemonic, None for one of no known group.
fine_class: Final = build_classifier(_GROUPS)
#: These do nothing that could be waited for.
NOTHING: Final = re.compile(r"nop|hint|bti|paciasp|autiasp|pac\w*|aut\w*|xpac\w*|prfu?m|csdb|yield|esb")

_STACK: Final = 31
_LINK: Final = 30
_FLAGS: Final = (CARRY, OVERFLOW, ZERO_SIGN)
_SETS_FLAGS: Final = re.compile(r"adds|subs|adcs|sbcs|negs|ngcs|ands|bics|cmp|cmn|tst|ccmp|ccmn|fc?cmpe?|fccmpe?")
_READS_FLAGS: Final = re.compile(r"b\.\w+|cs\w+|cinc|cinv|cneg|cset\w?|fcsel|f?ccmpe?|ccmn|adcs?|sbcs?|ngcs?")
_ONLY_READS: Final = re.compile(r"cmp|cmn|tst|ccmp|ccmn|fc?cmpe?|fccmpe?|cbn?z|tbn?z|br\w*|blr\w*|ret\w*|msr|b\.\w+")
_EXCLUSIVE: Final = re.compile(r"st[lx]*xrb?h?|stlxp|stxp")
_ATOMIC: Final = re.compile(r"(swp|cas|ld(add|clr|eor|set|[su]max|[su]min))\w*")
_ACCUMULATES: Final = re.compile(
    r"movk|bfi|bfxil|bfm|ins|fml[as]\w*|[su]?ml[as]\w*|[su]?mlal\w*|bit|bif|bsl|tbx|sri|sli"
)


def _build_locations() -> Mapping[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {
        "sp": (_STACK,),
        "wsp": (_STACK,),
        "fp": (29,),
        "lr": (_LINK,),
        "xzr": (),
        "wzr": (),
    }
    for number in range(31):
        found |= {f"x{number}": (GENERAL + number,), f"w{number}": (GENERAL + number,)}
    for number in range(32):
        found |= {f"{kind}{number}": (VECTOR_LOW + number,) for kind in "bhsd"}
        found |= {f"{kind}{number}": (VECTOR_LOW + number, VECTOR_REST + number) for kind in "qv"}
    return found | {"nzcv": _FLAGS, "fpcr": (FP_CONTROL,)}


_LOCATIONS: Final = _build_locations()


class Arm64Decoder(CapstoneDecoder):
    """Decodes AArch64."""

    def __init__(self, follow_stack: bool = True) -> None:
        super().__init__(CS_ARCH_ARM64, CS_MODE_ARM, _STACK, follow_stack)

    def _build_template(self, insn: CapstoneInstruction) -> Template:
        if NOTHING.fullmatch(insn.mnemonic):
            return Template(insn.mnemonic, ())
        found = fine_class(insn.mnemonic)
        return Template(
            insn.mnemonic, hide_locations(_build_steps(insn, class_or_unknown(found)), self._hidden), found is not None
        )


def _build_steps(insn: CapstoneInstruction, fine: int) -> list[Step]:
    operands = list(insn.operands)
    memory = [operand for operand in operands if operand.type == arm64_const.ARM64_OP_MEM]
    registers = [operand for operand in operands if operand.type == arm64_const.ARM64_OP_REG]
    if memory:
        return _memory_steps(insn, memory[0], registers)
    read, written = _find_accesses(insn, registers)
    if insn.mnemonic in ("bl", "blr"):
        written = [_LINK]
    if insn.mnemonic == "ret" and not registers:
        read.append(_LINK)
    if insn.mnemonic == "svc":
        read, written = [*range(9)], [GENERAL]
    if insn.mnemonic == "mrs":
        read.append(SEGMENTS)
    return [Step(OPERATE, fine, tuple(read), tuple(written))]


def _find_accesses(insn: CapstoneInstruction, registers: list[Operand]) -> tuple[list[int], list[int]]:
    """Return the locations read and written without memory: capstone tells them wrongly for aliases such as cmp."""
    places = [list(_find_locations(insn, operand.reg)) for operand in registers]
    first_is_source = _ONLY_READS.fullmatch(insn.mnemonic) is not None
    written = [] if first_is_source or not places else _add_upper_halves(places[0])
    sources = places if first_is_source or _ACCUMULATES.fullmatch(insn.mnemonic) else places[1:]
    read = [place for named in sources for place in named]
    if _SETS_FLAGS.fullmatch(insn.mnemonic):
        written += _FLAGS
    if _READS_FLAGS.fullmatch(insn.mnemonic):
        read += _FLAGS
    return read, written


def _memory_steps(insn: CapstoneInstruction, memory: Operand, registers: list[Operand]) -> list[Step]:
    """Return the steps of a load or store: its own, and the addition that moves the base along."""
    base = list(_find_locations(insn, memory.mem.base))
    address = [*base, *_find_locations(insn, memory.mem.index)]
    values = [place for operand in registers for place in _find_locations(insn, operand.reg)]
    steps: list[Step] = []
    load, store = FINE_INDEX["load"], FINE_INDEX["store"]
    if _ATOMIC.fullmatch(insn.mnemonic):
        steps += [Step(LOAD, load, tuple(address), tuple(values)), Step(STORE, store, (*address, *values))]
    elif insn.mnemonic.startswith("st"):
        status = values[:1] if _EXCLUSIVE.fullmatch(insn.mnemonic) else []
        steps.append(Step(STORE, store, (*address, *values), tuple(status)))
    else:
        steps.append(Step(LOAD, load, tuple(address), tuple(_add_upper_halves(values))))
    if getattr(insn, "writeback", False):
        steps.append(Step(OPERATE, FINE_INDEX["int add"], tuple(base), tuple(base)))
    return steps


def _add_upper_halves(written: Iterable[int]) -> list[int]:
    """Return the places, with the upper halves of vector registers whose lower halves are written."""
    places = list(dict.fromkeys(written))
    halves = [place + VECTOR_REST - VECTOR_LOW for place in places if VECTOR_LOW <= place < VECTOR_REST]
    return list(dict.fromkeys((*places, *halves)))


def _find_locations(insn: CapstoneInstruction, register: int) -> tuple[int, ...]:
    return _LOCATIONS.get(insn.reg_name(register) or "", ()) if register else ()
