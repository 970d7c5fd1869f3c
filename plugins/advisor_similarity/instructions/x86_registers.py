"""Names and masks of capstone's x86 registers and flags, and the locations behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from capstone import x86_const

from advisor_similarity.classes import FINE_INDEX
from advisor_similarity.steps import (
    CARRY,
    DIRECTION,
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
