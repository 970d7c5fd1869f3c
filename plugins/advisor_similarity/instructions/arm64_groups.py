"""Which class of operation an AArch64 mnemonic is."""

from __future__ import annotations

import re
from typing import Final

from advisor_similarity.classes import FINE_INDEX

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
_PATTERNS: Final = tuple(
    (re.compile("|".join(f"(?:{pattern})" for pattern in patterns.split())), FINE_INDEX[name])
    for name, patterns in _GROUPS
)

#: These do nothing that could be waited for.
NOTHING: Final = re.compile(r"nop|hint|bti|paciasp|autiasp|pac\w*|aut\w*|xpac\w*|prfu?m|csdb|yield|esb")


def fine_class(mnemonic: str) -> int | None:
    """Return the index into ``classes.FINE``; None for a mnemonic of no known group."""
    return next((fine for pattern, fine in _PATTERNS if pattern.fullmatch(mnemonic)), None)
