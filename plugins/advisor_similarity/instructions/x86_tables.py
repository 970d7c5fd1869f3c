"""x86 in the words of capstone: the class of each mnemonic, names and masks of registers and flags, and locations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from capstone import x86_const

from advisor_similarity.instructions.capstone_types import build_classifier
from advisor_similarity.steps import (
    CARRY,
    DIRECTION,
    FINE_INDEX,
    FP_CONTROL,
    GENERAL,
    LOW_BYTE,
    MASKS,
    OVERFLOW,
    SECOND_BYTE,
    SEGMENTS,
    VECTOR_LOW,
    VECTOR_REST,
    X87,
    ZERO_SIGN,
)

_NAMES: Final = ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp")
_FLAGS: Final = (
    ("CF", CARRY),
    ("OF", OVERFLOW),
    ("ZF", ZERO_SIGN),
    ("SF", ZERO_SIGN),
    ("PF", ZERO_SIGN),
    ("AF", ZERO_SIGN),
)
EXTENDED: Final = FINE_INDEX["fp extended"]
_COMPARE_AND_EXCHANGE: Final = [GENERAL, CARRY, OVERFLOW, ZERO_SIGN]
#: What capstone does not tell.
IMPLIED_READS: Final[Mapping[str, list[int]]] = {"syscall": [0, 2, 3, 4, 5, 8, 9, 10]}
IMPLIED_WRITES: Final[Mapping[str, list[int]]] = {
    **{"cmpxchg": _COMPARE_AND_EXCHANGE, "cmpxchg8b": _COMPARE_AND_EXCHANGE, "cmpxchg16b": _COMPARE_AND_EXCHANGE},
    "syscall": [0, 2, 11],
}
#: Regular expressions of mnemonics without prefixes, by class; the first class of which one matches wholly decides.
_GROUPS: Final = (
    ("branch jump", "jmp ljmp"),
    ("branch call", "call lcall"),
    ("branch return", "i?retq? retfq?"),
    ("branch conditional", r"j\w+ loop\w* xbegin"),
    ("fp multiply-add", r"v?fn?m(add|sub)\w+"),
    ("int add", "add sub inc dec neg lea adc sbb adcx adox xadd"),
    ("int logic", r"and or xor not andn bls\w+ bts btr btc bextr pdep pext bzhi bs[fr] [lt]zcnt popcnt crc32"),
    ("int shift", "sh[lr]x? sa[rl]x? ro[lr]x? rc[lr] sh[lr]d"),
    ("int multiply", "i?mulx?"),
    ("int divide", "i?div"),
    ("int compare", r"cmp test bt cmpxchg\w* cmps[bwdq] scas[bwdq]"),
    ("int move", r"mov(abs|zx|sxd?|be|nti)? cmov\w+ set\w+ xchg bswap cbw cwde cdqe cdq cqo cwd movs[bwdq] stos[bwdq]"),
    ("int move", r"lods[bwdq] lahf sahf leave enter push\w* pop\w* xlat\w* mov(dir|dq)\w+"),
    ("int logic", "clc stc cmc cld std"),
    ("fp add", "v?(add|sub|addsub|hadd|hsub)[ps][sdh]"),
    ("fp multiply", "v?mul[ps][sdh] v?dpp[sd]"),
    ("fp divide", r"v?(div|sqrt|rcp|rsqrt)\w*[ps][sdh]"),
    ("fp compare", r"v?(u?comis|cmp\w*p|cmp\w*s|max[ps]|min[ps])[sdh]"),
    ("fp convert", r"v?(cvt\w+|round[ps][sd]|rndscale\w+)"),
    ("fp move", r"v?(mov[ahlun]\w*p[sd]|movs[sdh]|movs[lh]dup|movddup|movhlps|movlhps|movmskp[sd]|unpck[lh]p[sd])"),
    ("fp move", r"v?(shufp[sd]|blendv?p[sd]|perm\w+p[sd]|insertps|extractps|broadcasts[sd]|broadcastf\w+)"),
    ("fp move", r"v?(andn?p[sd]|orp[sd]|xorp[sd]|testp[sd]|insertf\w+|extractf\w+|gather\w+p[sd]|scatter\w+p[sd])"),
    ("int vector", r"v?(mov[dq]|movdq\w+|movnt\w+|lddqu|maskmov\w+|p[a-z]\w+|aes\w+|sha\w+|mpsadbw|gf2p\w+|dbpsadbw)"),
    ("int vector", r"v(extracti|inserti|broadcasti|perm|align|pternlog|pgather|pscatter)\w* k\w+"),
    ("control", r"fx\w+ f(wait|init) wait"),
    ("fp extended", r"f(add|sub|mul|div|i|ld|st|ch|abs|sqrt|u|com|x|n|p|sin|cos|2xm1|yl2x|rnd|scale|ten|dec|free)\w*"),
    ("control", r"cpuid rdtscp? syscall sysenter int\w* [lms]fence (v?ld|v?st)mxcsr x\w+ rd\w+ wr\w+ hlt in\w* out\w*"),
    ("control", r"ud\d clflush\w* clwb monitor\w* mwait\w* cli sti str sgdt sidt sldt smsw emms ptwrite tpause umwait"),
)
#: The index into ``classes.FINE`` of a mnemonic, None for one of no known group.
fine_class: Final = build_classifier(_GROUPS)
#: These do nothing that could be waited for.
NOTHING: Final = frozenset(("nop", "endbr64", "endbr32", "fnop", "vzeroupper", "vzeroall", "pause", "cldemote"))


def _flag_masks(verbs: tuple[str, ...], flags: Iterable[tuple[str, int]]) -> tuple[tuple[int, int], ...]:
    found = []
    for flag, location in flags:
        names = (f"X86_EFLAGS_{verb}_{flag}" for verb in verbs)
        mask = sum(getattr(x86_const, name, 0) for name in names)
        found.append((mask, location))
    return tuple(found)


FLAG_WRITES: Final = _flag_masks(("MODIFY", "RESET", "SET", "UNDEFINED"), (*_FLAGS, ("DF", DIRECTION)))
FLAG_READS: Final = _flag_masks(("TEST", "PRIOR"), _FLAGS)


def _build_locations() -> Mapping[str, tuple[int, ...]]:
    """Return the locations behind each register's name."""
    found: dict[str, tuple[int, ...]] = {}
    for number in range(16):
        low, second, whole = LOW_BYTE + number, SECOND_BYTE + number, GENERAL + number
        if number < 8:
            name = _NAMES[number]
            wide = (f"r{name}", f"e{name}")
            bytes_ = (f"{name[0]}l", f"{name[0]}h") if number < 4 else (f"{name}l",)
        else:
            name, wide, bytes_ = f"r{number}w", (f"r{number}", f"r{number}d"), (f"r{number}b",)
        found |= dict.fromkeys(wide, (whole,)) | {name: (low, second), bytes_[0]: (low,)}
        if len(bytes_) == 2:
            found[bytes_[1]] = (second,)
    for number in range(32):
        both = (VECTOR_LOW + number, VECTOR_REST + number)
        found |= {f"{kind}mm{number}": both for kind in "xyz"}
    found |= {f"k{number}": (MASKS + number,) for number in range(8)}
    found |= {f"st({number})": (X87,) for number in range(8)} | {f"mm{number}": (X87,) for number in range(8)}
    return found | {"fpsw": (X87,), "fs": (SEGMENTS,), "gs": (SEGMENTS,), "mxcsr": (FP_CONTROL,)}


LOCATIONS: Final = _build_locations()
