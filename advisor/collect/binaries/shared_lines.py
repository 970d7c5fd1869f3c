"""Whether two threads store to the same lines of the cache in a loop, by the registers at their samples (x86-64)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.collect.binaries.memory_accesses import LINE_B, is_on_stack, read_access
from advisor.collect.binaries.registers import find_writes
from advisor.collect.binaries.sampled_addresses import FEW_SAMPLES, Registers, find_addresses

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction

#: This share of the stores of either thread, or more, go to lines that the other one stores to …
_SHARED: Final = 0.5
#: … if these are so few that both meet there again and again; parts of an array that change hands at times are more.
_MOST_LINES: Final = 16


def find_sharing(body: Sequence[Instruction], pairs: Mapping[int, Registers]) -> bool | None:
    """Return whether two threads store to the same few lines; None where their samples don't tell where they store.

    ``pairs`` are the registers of both at as many samples of each, (2, n, 16), by the address of the instruction.
    """
    told = [_shares_lines(*lines) for lines in _find_stores(body, pairs)]
    return any(told) if told else None


def _find_stores(body: Sequence[Instruction], pairs: Mapping[int, Registers]) -> Iterator[tuple[Registers, Registers]]:
    """Yield the lines to which both threads store, for each instruction of which enough samples tell them."""
    for at, one in enumerate(body):
        access = None if is_on_stack(one) else read_access(one)
        if access is None or not access.writes:
            continue
        seen = [pairs[body[near].address] for near in _list_near(body, at, {register for register, _ in access.terms})
                if body[near].address in pairs]  # fmt: skip
        if sum(values.shape[1] for values in seen) < FEW_SAMPLES:
            continue
        first, second = (find_addresses(one, np.concatenate([values[thread] for values in seen])) for thread in (0, 1))
        if first is not None and second is not None:
            yield first // np.uint64(LINE_B), second // np.uint64(LINE_B)


def _list_near(body: Sequence[Instruction], at: int, wanted: set[str]) -> range:
    """Return the instructions before which some registers hold what they do at the one ``at``, by their numbers.

    A sample stands before the instruction that it names. What an iteration writes first, the one before left.
    """
    written = [number for number, one in enumerate(body) if wanted & set(find_writes((one,)))]
    first = max((number + 1 for number in written if number < at), default=0)
    last = min((number for number in written if number >= at), default=len(body) - 1)
    return range(first, last + 1)


def _shares_lines(first: Registers, second: Registers) -> bool:
    """Return whether most stores of two threads go to the same few lines."""
    common = np.intersect1d(first, second)
    shares = (float(np.isin(lines, common).mean()) for lines in (first, second))
    return 0 < len(common) <= _MOST_LINES and min(shares) >= _SHARED
