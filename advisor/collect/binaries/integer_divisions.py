"""How many integers an inner loop divides in each iteration (x86-64).

Divisions of different iterations overlap, and the samples then lie behind whatever needs the results. But the one unit
that divides takes up the next one only after 6 cycles or more, in which thirty other instructions could run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction

DIVIDES: Final = frozenset({"div", "idiv"})
#: A piece of a loop with this part of the samples of its other instructions, or more, runs in most iterations.
_RUNS: Final = 0.25


def count_divisions(body: Sequence[Instruction], sampled: Mapping[int, int]) -> int:
    """Return the divisions in pieces of a loop that run in most of its iterations, by its samples."""
    seen = sum(sampled.get(one.address, 0) for one in body)
    if not seen:
        return 0
    count = 0
    for piece in _split(body):
        mine = sum(sampled.get(one.address, 0) for one in piece)
        if mine * len(body) >= _RUNS * seen * len(piece):
            count += sum(one.mnemonic in DIVIDES for one in piece)
    return count


def _split(body: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Yield the pieces of code between jumps and their targets."""
    targets = {one.target for one in body if one.jumps}
    piece: list[Instruction] = []
    for one in body:
        if one.address in targets and piece:
            yield piece
            piece = []
        piece.append(one)
        if one.jumps:
            yield piece
            piece = []
    if piece:
        yield piece
