"""What the registers at samples tell of addresses: through how much memory loads go, in which steps (x86-64).

Behind such a load the registers of its address mostly still hold what they did; where the load has overwritten one, as
on the way along a list, they hold the address of the next one, which is as good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from advisor.collect.binaries.memory_accesses import LINE_B, read_access
from advisor.collect.binaries.registers import whole_register
from advisor.trace.recordings.layout import REGISTER_NAMES

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.collect.binaries.disassembly import Instruction


Registers: TypeAlias = "npt.NDArray[np.uint64]"
#: Fewer addresses say nothing of how many there are, and neither do so few pairs of equal ones.
FEW_SAMPLES: Final = 20
_FEW_PAIRS: Final = 10
_PAGE_B: Final = 4096
#: The system places the memory of processes at random, over terabytes: no array is so large.
_APART_B: Final = 16 << 30
#: A value with this share of the samples is the usual one.
_ALIKE: Final = 0.8
#: Columns of registers by their names; ``r16`` is ``rbp`` where it points to no frame.
COLUMNS: Final = {name: at for at, name in enumerate(REGISTER_NAMES)} | {"r16": REGISTER_NAMES.index("rbp")}


def count_samples(code: Sequence[Instruction], sampled: Mapping[int, int]) -> int:
    """Return the samples in a piece of code, by those at each address."""
    return sum(sampled.get(one.address, 0) for one in code)


def find_addresses(one: Instruction, registers: Registers) -> npt.NDArray[np.uint64] | None:
    """Return the addresses (n,) that an instruction accesses, by registers at samples (n, 16); None for others."""
    access = read_access(one)
    if access is None or any(register not in COLUMNS for register, _ in access.terms):
        return None
    found = np.full(len(registers), access.displacement % (1 << 64), dtype=np.uint64)
    for register, factor in access.terms:
        found = found + registers[:, COLUMNS[register]] * np.uint64(factor)
    return found


def estimate_reach_B(addresses: Sequence[npt.NDArray[np.uint64]]) -> float | None:
    """Return through how many bytes of memory some addresses go, at most; None where they are too few to tell.

    Of n draws from m equal lines n (n - 1) / 2 m pairs are of one line. The same holds for pages, of which few draws
    are enough, and all lies between the first and the last one. Of several processes, whose memory lies apart, the one
    that goes through most counts.
    """
    drawn = np.concatenate(addresses) if addresses else np.zeros(0, dtype=np.uint64)
    if len(drawn) < FEW_SAMPLES:
        return None
    ordered = np.sort(drawn)
    groups = np.split(ordered, np.flatnonzero(np.diff(ordered) > _APART_B) + 1)
    found = [max(float(group[-1] - group[0]) for group in groups) + LINE_B]
    for unit in (LINE_B, _PAGE_B):
        counts = np.unique(drawn // np.uint64(unit), return_counts=True)[1].astype(np.float64)
        pairs = float((counts * (counts - 1) / 2).sum())
        if pairs >= _FEW_PAIRS:
            found.append(len(drawn) * (len(drawn) - 1) / 2 / pairs * unit)
    return min(found)


def read_constants(
    body: Sequence[Instruction], writes: Mapping[str, int], registers: Mapping[int, Registers]
) -> dict[str, int]:
    """Return the values of registers that a loop leaves alone, where they were the same at its samples.

    What a compiler can't know, as the distance of elements of an array that is passed with its shape, samples tell.
    """
    seen = [registers[one.address] for one in body if one.address in registers]
    if not seen:
        return {}
    values = np.concatenate(seen).astype(np.int64)
    found = {}
    for register, column in COLUMNS.items():
        if register not in writes:
            known, counts = np.unique(values[:, column], return_counts=True)
            if counts.max() >= _ALIKE * len(values):
                found[register] = int(known[counts.argmax()])
    return found


def read_steps(
    steps: Mapping[str, int | str], body: Sequence[Instruction], constants: Mapping[str, int]
) -> dict[str, int | str]:
    """Return the steps of a loop in numbers, where the registers that hold them are known."""
    return {
        register: constants[step] * _sign_of(register, body) if isinstance(step, str) and step in constants else step
        for register, step in steps.items()
    }


def _sign_of(register: str, body: Sequence[Instruction]) -> int:
    """Return -1 where a loop subtracts the step of a register, else 1."""
    return -1 if any(one.mnemonic == "sub" and whole_register(one.operands[0]) == register for one in body) else 1
