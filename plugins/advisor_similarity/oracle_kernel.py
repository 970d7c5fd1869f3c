"""The oracle machine in numba, for records of instructions and accesses that come through a pipe.

The same steps, locations and rules as in ``tracer/oracle.h``; memory is followed byte by byte. Importing this module
imports numba.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from advisor.support.compiling import jit
from advisor_similarity.steps import ALSO, GATHER, IF_TOUCHED, LOAD, LOW_BYTE, SECOND_BYTE, STORE, UNKNOWN, VECTOR_LOW

if TYPE_CHECKING:
    from advisor.model.records import IntArray

Octets = npt.NDArray[np.uint8]

_jit = jit(allocating=True)

#: Kinds of records: an instruction, and accesses of the one before.
INSTRUCTION, READ, WRITTEN, MODIFIED = range(4)
PAGE: Final = 4096
_BUCKETS: Final = 256
_CYCLES, _SHIFT, _LOADS, _STORES = range(4)


@dataclass(slots=True)
class OracleMachine:
    """The state of the oracle machine between two calls."""

    numbers: IntArray = field(default_factory=lambda: np.zeros(4, dtype=np.int64))
    registers: IntArray = field(default_factory=lambda: np.zeros((4, 128), dtype=np.int64))
    split: Octets = field(default_factory=lambda: np.zeros(VECTOR_LOW, dtype=np.uint8))
    buckets: IntArray = field(default_factory=lambda: np.zeros((_BUCKETS, UNKNOWN + 1), dtype=np.int64))
    cells: IntArray = field(default_factory=lambda: np.zeros((64, PAGE), dtype=np.int64))
    _rows: dict[int, int] = field(default_factory=dict)

    def schedule_records(
        self, kinds: Octets, addresses: IntArray, sizes: IntArray, templates: IntArray, book: TemplateTable
    ) -> None:
        """Schedule whole instructions: each record of one, then those of its accesses.

        ``templates`` (records,) is the template of each instruction. Accesses of more than a page are cut to one.
        """
        ends = addresses + np.clip(sizes, 1, PAGE) - 1
        first, last = self._find_rows(addresses, kinds), self._find_rows(ends, kinds)
        _schedule_records(
            self.numbers, self.registers, self.split, self.buckets, self.cells, kinds, addresses, ends, first, last,
            templates, book.steps, book.firsts, book.counts,
        )  # fmt: skip

    @property
    def cycles(self) -> int:
        """Cycles used so far."""
        return int(self.numbers[_CYCLES])

    @property
    def shift(self) -> int:
        """A bucket holds ``2**shift`` cycles."""
        return int(self.numbers[_SHIFT])

    @property
    def accesses(self) -> tuple[int, int]:
        """How often memory was read and written."""
        return int(self.numbers[_LOADS]), int(self.numbers[_STORES])

    def _find_rows(self, addresses: IntArray, kinds: Octets) -> IntArray:
        """Return the row of cells for each access; there is one for every page that was touched."""
        numbers, inverse = np.unique(np.where(kinds == INSTRUCTION, -1, addresses // PAGE), return_inverse=True)
        rows = np.array([self._rows.setdefault(number, len(self._rows)) for number in numbers.tolist()], dtype=np.int64)
        while len(self._rows) > len(self.cells):
            self.cells = np.concatenate((self.cells, np.zeros_like(self.cells)))
        found: IntArray = rows[inverse]
        return found


@dataclass(frozen=True, slots=True)
class TemplateTable:
    """Steps of all templates (n, 16) as ``steps.wire`` makes them; the first and the number of each template's."""

    steps: Octets
    firsts: IntArray
    counts: IntArray


def build_template_table(wired: list[bytes]) -> TemplateTable:
    """Return the templates' steps in one table."""
    counts = np.array([len(one) // 16 for one in wired], dtype=np.int64)
    steps = np.frombuffer(b"".join(wired), dtype=np.uint8).reshape(-1, 16)
    return TemplateTable(steps, np.cumsum(counts) - counts, counts)


@_jit
def parse_lackey(text: Octets, kinds: Octets, addresses: IntArray, sizes: IntArray) -> int:
    """Read the lines that lackey writes into the arrays; return how many records they held. Other lines are skipped."""
    found, at, end = 0, 0, len(text)
    while at < end:
        stop = at
        while stop < end and text[stop] != 10:
            stop += 1
        kind = -1
        if stop - at > 4 and text[at + 2] == 32:
            if text[at] == 73:
                kind = INSTRUCTION
            elif text[at] == 32 and text[at + 1] == 76:
                kind = READ
            elif text[at] == 32 and text[at + 1] == 83:
                kind = WRITTEN
            elif text[at] == 32 and text[at + 1] == 77:
                kind = MODIFIED
        if kind >= 0:
            address, size, place = 0, 0, at + 3
            while place < stop and text[place] != 44:
                digit = text[place]
                if digit != 32:
                    address = address * 16 + (digit - 48 if digit < 58 else (digit | 32) - 87)
                place += 1
            for place_of_size in range(place + 1, stop):
                size = size * 10 + text[place_of_size] - 48
            kinds[found], addresses[found], sizes[found] = kind, address, size
            found += 1
        at = stop + 1
    return found


@_jit
def _location_cycle(registers: IntArray, split: Octets, location: int) -> int:
    if location < LOW_BYTE:
        return int(registers[0, location])
    part = 2 if location >= SECOND_BYTE else 1
    register = location - (SECOND_BYTE if part == 2 else LOW_BYTE)
    return int(registers[part, register] if split[register] else registers[0, register])


@_jit
def _set_location(registers: IntArray, split: Octets, location: int, cycle: int) -> None:
    if location < LOW_BYTE:
        registers[0, location] = cycle
        if location < VECTOR_LOW:
            split[location] = 0
        return
    part = 2 if location >= SECOND_BYTE else 1
    register = location - (SECOND_BYTE if part == 2 else LOW_BYTE)
    if not split[register]:
        registers[1:4, register] = registers[0, register]
        split[register] = 1
    registers[part, register] = cycle
    registers[0, register] = max(registers[1, register], registers[2, register], registers[3, register])


@_jit
def _place_operation(numbers: IntArray, buckets: IntArray, ready: int, component: int) -> int:
    if ready >= numbers[_CYCLES]:
        numbers[_CYCLES] = ready + 1
    while ready >> numbers[_SHIFT] >= _BUCKETS:
        for row in range(_BUCKETS // 2):
            buckets[row] = buckets[2 * row] + buckets[2 * row + 1]
        buckets[_BUCKETS // 2 :] = 0
        numbers[_SHIFT] += 1
    buckets[ready >> numbers[_SHIFT], component] += 1
    return ready + 1


@_jit
def _load_cycle(
    cells: IntArray, kinds: Octets, addresses: IntArray, ends: IntArray, first: IntArray, last: IntArray, a: int, b: int
) -> int:
    """Return when the latest of the bytes became available that records ``a`` to ``b`` read."""
    latest, reads = 0, 0
    for record in range(a, b):
        reads += kinds[record] != WRITTEN
    for record in range(a, b):
        if kinds[record] == WRITTEN and reads:
            continue
        for byte in range(addresses[record], ends[record] + 1):
            row = first[record] if byte // PAGE == addresses[record] // PAGE else last[record]
            latest = max(latest, cells[row, byte % PAGE])
    return latest


@_jit
def _store_cycle(
    cells: IntArray, addresses: IntArray, ends: IntArray, first: IntArray, last: IntArray, record: int, cycle: int
) -> None:
    for byte in range(addresses[record], ends[record] + 1):
        row = first[record] if byte // PAGE == addresses[record] // PAGE else last[record]
        cells[row, byte % PAGE] = cycle


@_jit
def _schedule_records(
    numbers: IntArray, registers: IntArray, split: Octets, buckets: IntArray, cells: IntArray, kinds: Octets,
    addresses: IntArray, ends: IntArray, first: IntArray, last: IntArray, templates: IntArray, steps: Octets,
    firsts: IntArray, counts: IntArray,
) -> None:  # fmt: skip
    at, records = 0, len(kinds)
    while at < records:
        behind = at + 1
        while behind < records and kinds[behind] != INSTRUCTION:
            numbers[_LOADS] += kinds[behind] != WRITTEN
            numbers[_STORES] += kinds[behind] != READ
            behind += 1
        carried, cycle = 0, 0
        for row in range(firsts[templates[at]], firsts[templates[at]] + counts[templates[at]]):
            step = steps[row]
            if step[2] & IF_TOUCHED and behind == at + 1:
                continue
            if step[0] != ALSO:
                ready = carried
                for place in range(4, 8):
                    ready = max(ready, _location_cycle(registers, split, step[place]))
                carried = ready if step[0] == GATHER else 0
                if step[0] == GATHER:
                    continue
                if step[0] == LOAD:
                    ready = max(ready, _load_cycle(cells, kinds, addresses, ends, first, last, at + 1, behind))
                cycle = _place_operation(numbers, buckets, ready, step[1])
            for place in range(8, 12):
                _set_location(registers, split, step[place], cycle)
            if step[0] == STORE:
                for record in range(at + 1, behind):
                    if kinds[record] >= WRITTEN:
                        _store_cycle(cells, addresses, ends, first, last, record, cycle)
        at = behind
