"""Where the records of a file go in the tables of call paths and processors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from advisor.formats.caliper.metrics import MetricChoice, MetricMeaning
    from advisor.formats.caliper.tables import RecordTable
    from advisor.model.records import FloatArray, IntArray

#: What regions beyond the limit are put together as.
OTHER: Final = "other regions"


@dataclass(frozen=True, slots=True)
class RecordCells:
    """The records of ``table``, what its attributes mean, and the cell of each record.

    ``cell`` (records,) is node * processors + processor; ``shape`` is (nodes, processors).
    """

    table: RecordTable
    choice: MetricChoice
    cell: IntArray
    shape: tuple[int, int]

    def sum_cells(self, values: FloatArray) -> FloatArray:
        """Return ``values`` (records,) added up (nodes, processors); NaN counts as nothing."""
        count = self.shape[0] * self.shape[1]
        return np.bincount(self.cell, np.nan_to_num(values), count).astype(np.float64).reshape(self.shape)

    def to_seconds(self, meaning: MetricMeaning | None) -> FloatArray:
        """Return the attribute's values (records,) in seconds, NaN where a record has none."""
        values = None if meaning is None else self.table.values.get(meaning.name)
        return np.full(len(self.cell), np.nan) if values is None or meaning is None else values * meaning.unit_s

    def select_ended(self, values: FloatArray) -> FloatArray:
        """Return ``values`` where a region ended, NaN elsewhere; all where the file does not tell ends."""
        return values if self.table.ends is None else np.where(self.table.ends, values, np.nan)
