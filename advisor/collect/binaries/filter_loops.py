"""Whether an inner loop computes a test for many elements that few of them pass (x86-64).

As where the distance of each pair is computed, and only near ones act on each other: the work behind the test is next
to none, and the loop takes as long as there are elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.float_arithmetic import is_arithmetic
from advisor.collect.binaries.sampled_addresses import count_samples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction

#: Below so many samples a piece of code may have none by chance.
_FEWEST: Final = 50
#: Who passes takes this part of the loop's samples at most.
_PASSES: Final = 0.05
#: A test of fewer operations is a plain comparison, and one of fewer instructions behind it no work that is spared.
_TESTED: Final = 3
_SPARED: Final = 5
#: Shorter loops have to look at each of their elements.
_LONG: Final = 100
_COMPARES: Final = ("comis", "ucomis", "vcomis", "vucomis")


def is_filter(body: Sequence[Instruction], trips: int | None, sampled: Mapping[int, int]) -> bool:
    """Return whether a loop tests many numbers, and hardly ever goes on to what lies behind the test."""
    seen = count_samples(body, sampled)
    if trips is None or trips < _LONG or seen < _FEWEST:
        return False
    for at, one in enumerate(body):
        if not one.jumps or one.mnemonic == "jmp" or not at or not body[at - 1].mnemonic.startswith(_COMPARES):
            continue
        if one.target is None or not one.address < one.target <= body[-1].address:
            continue
        behind = [each for each in body[at + 1 :] if each.address < one.target]
        works = len(behind) >= _SPARED and any(map(is_arithmetic, behind))
        tests = sum(map(is_arithmetic, body[:at])) >= _TESTED
        if works and tests and count_samples(behind, sampled) <= _PASSES * seen:
            return True
    return False
