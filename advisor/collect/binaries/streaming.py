"""Whether a loop waits for the memory that it goes through in order, by how far it gets between two samples (x86-64).

Two samples of a thread, one after the other, in one loop tell how many iterations the loop made in the CPU time between
them: addresses advance by a known number of bytes in each. A loop that takes far longer for an iteration than its
instructions do, and goes through more memory than caches hold, waits for memory, and no better instructions help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.collect.binaries.memory_accesses import read_access
from advisor.collect.binaries.sampled_addresses import COLUMNS, Registers, estimate_reach_B, find_addresses

if TYPE_CHECKING:
    from advisor.collect.binaries.disassembly import Instruction
    from advisor.collect.binaries.loop_accesses import Terms
    from advisor.model.records import FloatArray

#: Columns of ``Profile.sampled_progress`` behind the registers.
CYCLES: Final = 16
PLACE: Final = 17
#: What goes through so much memory in order comes from there, not from a cache.
_BEYOND_CACHES_B: Final = 32 << 20
#: Instructions that processors mostly start in a cycle, at most.
_STARTED: Final = 4.0
#: Cycles of a division or root, and of an addition that the next one waits for.
_DIVISION_CYCLES: Final = 8.0
_SUM_CYCLES: Final = 4.0
#: A loop that takes so many times as long as its instructions waits for something else, as ports that several of them
#: need rarely cost as much.
_WAITING: Final = 2.0
#: Bytes that a core gets from memory in a cycle at best, 25 to 40 GB/s.
_CORE_B: Final = 10.0
#: Fewer pairs of samples say nothing of how long an iteration takes.
_FEW_PAIRS: Final = 8
#: What some samples have in common with few others, as time that passed elsewhere: this part gets on fastest.
_FASTEST: Final = 25


def waits_for_memory(
    body: Sequence[Instruction],
    walks: Mapping[Terms, int],
    chains: tuple[int, int],
    registers: Mapping[int, Registers],
    progress: Mapping[int, Registers],
) -> bool | None:
    """Return whether a loop waits for memory that it goes through in order; None where samples don't tell.

    ``walks`` are the bytes by which each address advances in an iteration, ``chains`` the sums whose terms wait for
    each other, and the divisions. ``registers`` (n, 16) and ``progress`` (n, 2, 18) are those of the profile, by the
    address of the instruction.
    """
    found = _measure_streams(body, walks, registers, progress)
    if found is None:
        return None
    streams, cycles = found
    if not streams:
        return False
    if cycles is None:
        return None
    least = max(len(body) / _STARTED, _SUM_CYCLES * chains[0]) + _DIVISION_CYCLES * chains[1]
    return cycles >= _WAITING * least


def measure_memory_share(
    body: Sequence[Instruction],
    walks: Mapping[Terms, int],
    registers: Mapping[int, Registers],
    progress: Mapping[int, Registers],
) -> float:
    """Return the share of a loop's time in which memory could just bring what it goes through; 0 where not known.

    So much stays, however fast the loop computes: a sum in any order, and vectors, win the rest at most. Of what lies
    in one piece of memory, as rows of a matrix, the same bytes come once.
    """
    found = _measure_streams(body, walks, registers, progress)
    if found is None or found[1] is None:
        return 0.0
    moved_B, end = 0, 0.0
    for begin, last, step in sorted(found[0].values()):
        moved_B += abs(step) if begin > end else 0
        end = max(end, last)
    return min(moved_B / (_CORE_B * found[1]), 1.0)


def _measure_streams(
    body: Sequence[Instruction],
    walks: Mapping[Terms, int],
    registers: Mapping[int, Registers],
    progress: Mapping[int, Registers],
) -> tuple[dict[Terms, tuple[float, float, int]], float | None] | None:
    """Return the walks that go through more than caches hold, and the cycles of an iteration; None where not sampled.

    Walks are given by their first and last address and their step. Only they tell how far the loop got: a row that is
    read again and again begins anew between two samples. The cycles are None where too few pairs of samples tell them.
    """
    seen = [registers[one.address] for one in body if one.address in registers]
    passed = [progress[one.address] - _shift(one, progress[one.address]) for one in body if one.address in progress]
    if not walks or not seen or not passed:
        return None
    streams = _find_streams(body, walks, np.concatenate(seen))
    steps = {terms: walks[terms] for terms in streams}
    cycles = _measure_iterations(steps, np.concatenate(passed), (body[0].address, body[-1].address))
    return streams, float(np.percentile(cycles, _FASTEST)) if len(cycles) >= _FEW_PAIRS else None


def _shift(one: Instruction, pairs: Registers) -> Registers:
    """Return what to take off pairs of samples to have the addresses of instructions in place of places in the file."""
    shift = np.zeros(pairs.shape[2], dtype=np.uint64)
    shift[[PLACE]] = pairs[0, 0, [PLACE]] - np.uint64(one.address)  # modulo 2^64, which only arrays do without a word
    return shift


def _find_streams(
    body: Sequence[Instruction], walks: Mapping[Terms, int], seen: Registers
) -> dict[Terms, tuple[float, float, int]]:
    """Return the walks through more memory than caches hold: the first and last address, and the step."""
    found = {}
    for one in body:
        access = read_access(one)
        drawn = find_addresses(one, seen) if access is not None and access.terms in walks else None
        if access is not None and drawn is not None and (estimate_reach_B([drawn]) or 0.0) >= _BEYOND_CACHES_B:
            found[access.terms] = float(drawn.min()), float(drawn.max()), walks[access.terms]
    return found


def _measure_iterations(walks: Mapping[Terms, int], pairs: Registers, span: tuple[int, int]) -> FloatArray:
    """Return how many cycles an iteration took between two samples (pairs,), of pairs that lie in the loop."""
    places = pairs[:, 1, PLACE]
    inside = pairs[(places >= np.uint64(span[0])) & (places <= np.uint64(span[1]))]
    advance = (inside[:, 1] - inside[:, 0]).astype(np.int64)
    counts = [
        sum(advance[:, COLUMNS[register]] * factor for register, factor in terms) / step
        for terms, step in walks.items()
        if all(register in COLUMNS for register, _ in terms)
    ]
    if not counts:
        return np.zeros(0)
    iterations = np.median(np.stack(counts), axis=0)
    forward = iterations > 0
    found: FloatArray = advance[forward, CYCLES] / iterations[forward]
    return found
