"""Places at which samples show that a processor had guessed a branch wrong (x86-64).

What it has begun on the wrong way is thrown away, and nothing is completed until the right way arrives, 15 to 20 cycles
later: a timer finds the thread at the first instruction of that way, or at the second. A branch that waits for a number
from memory holds up the first one only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.registers import find_steps, find_writes, whole_register
from advisor.collect.binaries.sampled_addresses import count_samples

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: Both together have so many times as many samples as two instructions of their loop on average, or more, the first …
_STANDS_OUT: Final = 1.5
#: … as many as one, and the second such a share of the first.
_SECOND: Final = 0.3


def find_mispredicted(
    code: Sequence[Instruction], spans: Sequence[tuple[int, int]], sampled: Mapping[int, int], late: Set[int]
) -> set[int]:
    """Return the places with samples that follow a branch guessed wrong.

    ``spans`` are the loops, inner ones first, ``sampled`` the samples by address, and ``late`` the places that wait for
    memory.
    """
    number = {one.address: at for at, one in enumerate(code)}
    found: set[int] = set()
    for at, one in enumerate(code):
        if not one.jumps or one.mnemonic == "jmp":
            continue
        ways = [at + 1, *([number[one.target]] if one.target in number else [])]
        for way in ways:
            pair = [each.address for each in code[way : way + 3] if not each.jumps][:2]
            if not _holds_up(pair, code, spans, sampled) or pair[0] in late:
                continue
            if way == at + 1 or not _is_foreseen(code, at, spans):
                found.update(address for address in (code[way].address, *pair) if address in sampled.keys() - late)
    return found


def _is_foreseen(code: Sequence[Instruction], at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a jump ends a loop that counts: its way back is taken all times but one."""
    body = _find_body(code, spans, code[at].address)
    target = code[at].target
    if target is None or target > code[at].address:
        return False
    writes = find_writes(body)
    steps = find_steps(body, writes)
    compared = next((one.operands for one in reversed(code[:at]) if not one.jumps), ())
    return all("[" not in each and ((name := whole_register(each)) in steps or name not in writes) for each in compared)


def _holds_up(
    pair: Sequence[int], code: Sequence[Instruction], spans: Sequence[tuple[int, int]], sampled: Mapping[int, int]
) -> bool:
    """Return whether the first two instructions of a way have more samples than others of their loop."""
    if len(pair) < 2 or not sampled.get(pair[0]):
        return False
    body = _find_body(code, spans, pair[0])
    average = count_samples(body, sampled) / len(body)
    first, second = (sampled.get(address, 0) for address in pair)
    return first + second >= 2 * _STANDS_OUT * average and first >= max(average, 1) and second >= _SECOND * first


def _find_body(code: Sequence[Instruction], spans: Sequence[tuple[int, int]], address: int) -> Sequence[Instruction]:
    """Return the innermost loop around an address, else the whole function."""
    begin, end = next((span for span in spans if span[0] <= address < span[1]), (0, 0))
    return [one for one in code if begin <= one.address < end] or code
