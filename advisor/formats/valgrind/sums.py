"""Counts added up by place and by source line while a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.valgrind.line_errors import MistakeError

if TYPE_CHECKING:
    from advisor.formats.valgrind.name_table import Cell
    from advisor.model.records import FloatArray, IntArray

#: Places and lines beyond these numbers are not told apart in memory.
CELLS: Final = 2_000_000
_EXACT: Final = 2.0**53


class PlaceSums:
    """Counts by place (places, events) and by source line."""

    def __init__(self, events: int) -> None:
        self.events = events
        self._number: dict[Cell, int] = {}
        self._file: dict[bytes, int] = {}
        self._counts = np.zeros((64, events))
        self._line = np.full(64, np.iinfo(np.int64).max)
        self._keys: list[IntArray] = []
        self._rows: list[FloatArray] = []

    def number_place(self, cell: Cell) -> tuple[int, int, bool]:
        """Return the numbers of a place and of its source file, and whether that is the function's own."""
        number = self._number.setdefault(cell, len(self._number))
        if number >= CELLS:
            raise MistakeError(f"more than {CELLS:,} places")
        if number >= len(self._counts):
            self._counts = np.vstack((self._counts, np.zeros_like(self._counts)))
            self._line = np.concatenate((self._line, np.full_like(self._line, np.iinfo(np.int64).max)))
        return number, self._file.setdefault(cell[1], len(self._file)), cell[1] == cell[3]

    def add_table(self, cells: IntArray, files: IntArray, own: IntArray, lines: IntArray, table: FloatArray) -> None:
        """Add a table (lines of the file, events) of what was counted in each place and line."""
        some, at = np.unique(cells, return_inverse=True)
        self._counts[some] += _sum_groups(at, len(some), table)
        if self._counts[some].max(initial=0.0) >= _EXACT:
            raise MistakeError("the counts add up to more than can be")
        known = np.flatnonzero((own > 0) & (lines > 0))
        np.minimum.at(self._line, cells[known], lines[known])
        keys, at = np.unique((files << 32) | lines, return_inverse=True)
        self._keys.append(keys)
        self._rows.append(_sum_groups(at, len(keys), table))
        if sum(map(len, self._keys[-64:])) > CELLS or len(self._keys) > 64:
            self._merge_lines()

    def _merge_lines(self) -> None:
        keys, at = np.unique(np.concatenate(self._keys), return_inverse=True)
        self._keys, self._rows = [keys], [_sum_groups(at, len(keys), np.vstack(self._rows))]
        if len(keys) > CELLS:
            raise MistakeError(f"more than {CELLS:,} source lines")

    def list_places(self) -> tuple[list[Cell], FloatArray, IntArray]:
        """Return the places, their counts (places, events), and the first line of each that is known, 0 for none."""
        count = len(self._number)
        line = self._line[:count]
        return list(self._number), self._counts[:count], np.where(line == np.iinfo(np.int64).max, 0, line)

    def list_lines(self) -> tuple[list[bytes], IntArray, IntArray, FloatArray]:
        """Return source files, and of each line the file's number, the line and the counts (lines, events)."""
        if not self._keys:
            nothing = np.zeros(0, dtype=np.int64)
            return list(self._file), nothing, nothing, np.zeros((0, self.events))
        self._merge_lines()
        keys = self._keys[0]
        return list(self._file), keys >> 32, keys & 0xFFFFFFFF, self._rows[0]


def _sum_groups(at: IntArray, groups: int, table: FloatArray) -> FloatArray:
    """Return the rows of ``table`` added up by group (groups, columns)."""
    columns = table.shape[1]
    cells: IntArray = (at[:, None] * columns + np.arange(columns)).ravel()
    total = np.bincount(cells, weights=table.ravel(), minlength=groups * columns)
    return total.astype(np.float64).reshape(groups, columns)
