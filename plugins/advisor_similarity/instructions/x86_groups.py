"""Which class of operation an x86 mnemonic is."""

from __future__ import annotations

import re
from typing import Final

from advisor_similarity.classes import FINE_INDEX

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
_PATTERNS: Final = tuple(
    (re.compile("|".join(f"(?:{pattern})" for pattern in patterns.split())), FINE_INDEX[name])
    for name, patterns in _GROUPS
)

#: These do nothing that could be waited for.
NOTHING: Final = frozenset(("nop", "endbr64", "endbr32", "fnop", "vzeroupper", "vzeroall", "pause", "cldemote"))


def fine_class(mnemonic: str) -> int | None:
    """Return the index into ``classes.FINE``; None for a mnemonic of no known group."""
    return next((fine for pattern, fine in _PATTERNS if pattern.fullmatch(mnemonic)), None)
