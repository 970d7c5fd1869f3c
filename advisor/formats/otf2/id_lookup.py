"""From recorded ids to numbers: of regions, communicators and files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model.records import IntArray

#: Spreads ids over a hash table (2^32 divided by the golden ratio; Knuth, The Art of Computer Programming 3, 6.4).
SPREADING = 2654435769
#: What stands for no id in a hash table.
EMPTY = -1


class IdLookup:
    """Maps ids to numbers; ids that were never defined map to -1."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self._numbers = numbers

    def map_through(self, id_map: Mapping[int, int]) -> Self | IdLookup:
        """Return the lookup of local ids that stand for the global ones of ``id_map``, the others for themselves."""
        if not id_map:
            return self
        meant = {local: self._numbers[known] for local, known in id_map.items() if known in self._numbers}
        return IdLookup({identity: n for identity, n in self._numbers.items() if identity not in id_map} | meant)

    @cached_property
    def _sorted_ids(self) -> tuple[IntArray, npt.NDArray[np.int32]]:
        ids = sorted(self._numbers)
        numbers = [self._numbers[identity] for identity in ids]
        return np.array([*ids, EMPTY], dtype=np.int64), np.array([*numbers, -1], dtype=np.int32)

    def __call__(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return the number of each id."""
        known, numbers = self._sorted_ids
        position = np.searchsorted(known[:-1], ids)
        return numbers[np.where(known[position] == ids, position, len(known) - 1)]

    @cached_property
    def hash_table(self) -> tuple[IntArray, npt.NDArray[np.int32]]:
        """Ids and numbers in an open hash table with linear probing, at most half full, for the compiled decoder."""
        size = 1 << max(4, (2 * len(self._numbers)).bit_length())
        slots, values = np.full(size, EMPTY, dtype=np.int64), np.full(size, -1, dtype=np.int32)
        for identity, number in self._numbers.items():
            slot = ((identity * SPREADING) & 0xFFFFFFFF) * size >> 32
            while slots[slot] != EMPTY:
                slot = (slot + 1) % size
            slots[slot], values[slot] = identity, number
        return slots, values
