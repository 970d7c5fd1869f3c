"""How many integers an inner loop divides in each iteration (x86-64).

Divisions of different iterations overlap, and the samples then lie behind whatever needs the results. But the one unit
that divides takes up the next one only after 6 cycles or more, in which thirty other instructions could run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.collect.binaries.disassembly import split_pieces
from advisor.collect.binaries.sampled_addresses import count_samples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.collect.binaries.disassembly import Instruction

DIVIDES: Final = frozenset({"div", "idiv"})
#: A piece of a loop with this part of the samples of its other instructions, or more, runs in most iterations.
_RUNS: Final = 0.25


def count_divisions(body: Sequence[Instruction], sampled: Mapping[int, int]) -> int:
    """Return the divisions in pieces of a loop that run in most of its iterations, by its samples."""
    seen = count_samples(body, sampled)
    if not seen:
        return 0
    count = 0
    for piece in split_pieces(body):
        if count_samples(piece, sampled) * len(body) >= _RUNS * seen * len(piece):
            count += sum(one.mnemonic in DIVIDES for one in piece)
    return count
