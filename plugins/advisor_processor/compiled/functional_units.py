"""Which functional unit an instruction of x86-64 occupies."""

from __future__ import annotations

import re
from typing import Final

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
