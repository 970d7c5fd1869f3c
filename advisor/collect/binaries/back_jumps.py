"""Which jumps back in a function close a loop (x86-64).

Compilers put code that is seldom run behind the function, from where it jumps back into the loop that it left: such a
jump closes none. One that does can be reached from its target by code in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction

#: A jump back over more code than this is no innermost loop that anyone wrote.
LONGEST: Final = 20_000


def find_loop_spans(code: Sequence[Instruction]) -> set[tuple[int, int]]:
    """Return the beginnings and ends of all loops of a function, by what jumps back closes them."""
    number = {one.address: at for at, one in enumerate(code)}
    found = set()
    for at, one in enumerate(code):
        first = number.get(one.target, at + 1) if one.jumps and one.target is not None else at + 1
        if first > at:
            continue
        span = code[first].address, one.address + one.size
        if span[1] - span[0] > LONGEST or _comes_by(code, number, first, at):
            found.add(span)
    return found


def order_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the loops that somebody may have written, inner ones first."""
    return sorted((span for span in spans if span[1] - span[0] <= LONGEST), key=lambda span: span[1] - span[0])


def _comes_by(code: Sequence[Instruction], number: Mapping[int, int], first: int, last: int) -> bool:
    """Return whether execution may come from one instruction to another by those in between."""
    ahead, seen = [first], set()
    while ahead:
        at = ahead.pop()
        while first <= at <= last and at not in seen:
            if at == last:
                return True
            seen.add(at)
            one = code[at]
            if one.jumps:
                if one.target is None:
                    return True  # it may go anywhere, as that of a switch does
                ahead.append(number.get(one.target, -1))
            if one.mnemonic in ("jmp", "ret"):
                break
            at += 1
    return False
