"""Whether an inner loop computes a test for many elements that few of them pass (x86-64).

As where the distance of each pair is computed, and only near ones act on each other: the work behind the test is next
to none, and the loop takes as long as there are elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.float_arithmetic import is_arithmetic
from advisor.collect.binaries.registers import find_steps, find_writes
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


def leaves_to_work(body: Sequence[Instruction], code: Sequence[Instruction], sampled: Mapping[int, int]) -> bool:
    """Return whether a loop over arrays tests numbers, and hardly ever goes on to work that lies outside of it.

    Compilers put what they expect to be rare behind the loop, or behind the whole function, from where it leads back.
    What lies around both, in ``code``, has hardly any samples either where the elements are many.
    """
    seen = count_samples(body, sampled)
    if seen < _FEWEST or sum(map(is_arithmetic, body)) < _TESTED or not _reads_along(body):
        return False
    for at, one in enumerate(body):
        if not one.jumps or not at or not body[at - 1].mnemonic.startswith(_COMPARES):
            continue
        work = _find_work(body, code, one)
        works = len(work) >= _SPARED and any(is_arithmetic(each) or each.mnemonic == "call" for each in work)
        if works and max(count_samples(work, sampled), _count_around(body, code, work, sampled)) <= _PASSES * seen:
            return True
    return False


def _reads_along(body: Sequence[Instruction]) -> bool:
    """Return whether a loop goes through an array, and does not repeat the same until it is good enough."""
    steps = find_steps(body, find_writes(body))
    return any(one.memory is not None and any(name in one.memory for name in steps) for one in body)


def _find_work(body: Sequence[Instruction], code: Sequence[Instruction], test: Instruction) -> list[Instruction]:
    """Return the instructions outside a loop that a test in it leads to and that lead back into it; none otherwise."""
    begin, end = body[0].address, body[-1].address
    closes = test is body[-1]
    start = end + body[-1].size if closes else test.target
    if start is None or begin <= start <= end:
        return []
    found: list[Instruction] = []
    for one in (each for each in code if each.address >= start):
        found.append(one)
        if one.mnemonic in ("jmp", "ret"):
            break
    back = found[-1].target if found and found[-1].mnemonic == "jmp" else None
    if back is None or back > end:
        return []
    lead = [one for one in code if back <= one.address < begin]
    return [] if any(one.jumps for one in lead) else [*found, *lead]


def _count_around(
    body: Sequence[Instruction], code: Sequence[Instruction], work: Sequence[Instruction], sampled: Mapping[int, int]
) -> int:
    """Return the samples of the loop around a loop and its work, without both; all of ``code`` without one."""
    begin, end = body[0].address, body[-1].address
    inside = {one.address for one in (*body, *work)}
    closing = (
        one for one in code
        if one.jumps and one.target is not None and one.target <= begin and one.address > end
        and one.address not in inside
    )  # fmt: skip
    last = min(closing, key=lambda one: one.address - (one.target or 0), default=None)
    first = 0 if last is None else last.target or 0
    around = [one for one in code if last is None or first <= one.address <= last.address]
    return count_samples([one for one in around if one.address not in inside], sampled)
