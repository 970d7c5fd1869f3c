"""The oracle machine, slowly and obviously: the scheduler that the fast ones are compared with.

Unlimited units, no overhead, every branch known: a step is carried out one cycle after the latest step that made
one of its inputs (Meajil, El-Ghazawi and Sterling, section 3; Theobald, Gao and Hendren for the limited machine).
Every byte of memory and every part of a register is followed on its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor_similarity.steps import COARSE_OF, LOAD, LOW_BYTE, SECOND_BYTE, STORE, VECTOR_LOW, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The third part of a general register: bits 16 to 63.
_UPPER = 192


@dataclass(frozen=True, slots=True)
class Access:
    """One access to memory: ``size`` bytes from ``address``."""

    address: int
    size: int
    store: bool


@dataclass(slots=True)
class ReferenceSchedule:
    """Cycles used so far, and how many operations of each component every cycle holds."""

    slots: int | None = None
    cycles: int = 0
    operations: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    registers: dict[int, int] = field(default_factory=dict)
    memory: dict[int, int] = field(default_factory=dict)

    def schedule_instruction(self, steps: Sequence[Step], accesses: Sequence[Access]) -> None:
        """Schedule one executed instruction."""
        for step in steps:
            if not (step.if_touched and not accesses):
                self._schedule_step(step, accesses)

    def _schedule_step(self, step: Step, accesses: Sequence[Access]) -> None:
        ready = max((self.registers.get(place, 0) for place in _expand_locations(step.reads)), default=0)
        if step.kind == LOAD:
            ready = max([ready, *(self.memory.get(byte, 0) for byte in _list_bytes(_select_loads(accesses)))])
        cycle = self._find_free_cycle(ready + 1)
        self.operations[cycle][COARSE_OF[step.fine]] += 1
        self.cycles = max(self.cycles, cycle)
        self.registers.update(dict.fromkeys(_expand_locations(step.writes), cycle))
        if step.kind == STORE:
            self.memory.update(dict.fromkeys(_list_bytes(access for access in accesses if access.store), cycle))

    def _find_free_cycle(self, cycle: int) -> int:
        while self.slots is not None and self.operations[cycle].total() >= self.slots:
            cycle += 1
        return cycle


def _expand_locations(locations: Iterable[int]) -> list[int]:
    """Return the parts that the locations consist of: a general register is three."""
    places: list[int] = []
    for location in locations:
        is_general = location < VECTOR_LOW
        places += [LOW_BYTE + location, SECOND_BYTE + location, _UPPER + location] if is_general else [location]
    return places


def _select_loads(accesses: Sequence[Access]) -> Sequence[Access]:
    """Return what an instruction read; an atomic one reports its single access as a store."""
    return [access for access in accesses if not access.store] or accesses


def _list_bytes(accesses: Iterable[Access]) -> list[int]:
    return [access.address + offset for access in accesses for offset in range(access.size)]
