"""All files of a metric together: what is measured of each function on each processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from advisor.formats.tau.sheet import EXCL, INCL, FunctionNames, ProfileSheet

if TYPE_CHECKING:
    from advisor.model.records import FloatArray, IntArray

#: What is kept apart: functions, and functions times processors; what is beyond goes to its callee or to the rest.
NAME_LIMIT: Final = 90_000
CELL_LIMIT: Final = 30_000_000
#: The region of functions beyond the limit.
REST: Final = b"other functions"
SEPARATOR: Final = b" => "


@dataclass(frozen=True, slots=True)
class MetricTable:
    """A metric: ``values`` (4, names, processors) are calls, calls from it, exclusive and inclusive values."""

    metric: str
    values: FloatArray


@dataclass(slots=True)
class TableBuilder:
    """The sheets of a metric as they come, without cells of functions that a processor did not call."""

    metric: str = ""
    ids: list[IntArray] = field(default_factory=list)
    processors: list[IntArray] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)

    def add_sheet(self, sheet: ProfileSheet, processor: int) -> None:
        """Take in the sheet of a processor."""
        self.metric = sheet.metric
        self.ids.append(sheet.ids)
        self.processors.append(np.full(len(sheet.ids), processor))
        self.values.append(sheet.values)

    def compute_weights(self, count: int) -> FloatArray:
        """Return how much each of ``count`` names matters: what it takes, and a little for what it calls."""
        if not self.ids:
            return np.zeros(count)
        values = np.concatenate(self.values)
        taken = values[:, EXCL] + 1e-3 * values[:, INCL]
        return np.bincount(np.concatenate(self.ids), taken, minlength=count).astype(np.float64)

    def build_table(self, place: IntArray, count: int, processors: int) -> MetricTable:
        """Return the values of all sheets; ``place`` is the row of each name (-1: none), of ``count``."""
        found = np.zeros((4, count, processors))  # takes no memory until it is written to
        if self._is_alike(place):
            columns = np.concatenate([several[:1] for several in self.processors if len(several)])
            values = np.ascontiguousarray(np.array(self.values).transpose(2, 1, 0))
            if (
                values.shape == found.shape
                and (np.diff(place[self.ids[0]]) == 1).all()
                and (np.diff(columns) > 0).all()
            ):
                return MetricTable(self.metric, values)
            found[:, place[self.ids[0]][:, None], columns] = values
            return MetricTable(self.metric, found)
        row = place[np.concatenate(self.ids)]
        cell = row * processors + np.concatenate(self.processors)
        values, kept = np.concatenate(self.values), row >= 0
        if not kept.all():
            cell, values = cell[kept], values[kept]
        size = count * processors
        for n, column in enumerate(values.T):
            found[n] = np.bincount(cell, np.ascontiguousarray(column), minlength=size).reshape(count, processors)
        return MetricTable(self.metric, found)

    def _is_alike(self, place: IntArray) -> bool:
        """Return whether all sheets hold the same functions in the same order, each once and in a row of its own."""
        first = self.ids[0]
        rows = place[first]
        alike = all(np.array_equal(first, ids) for ids in self.ids)
        return alike and len(first) > 0 and bool((rows >= 0).all()) and len(np.unique(rows)) == len(first)


def select_names(
    names: FunctionNames, metrics: Sequence[TableBuilder], processors: int
) -> tuple[list[bytes], IntArray, int]:
    """Return the names that get a row, the row of each name (-1: none), and how many have none of their own.

    Call paths beyond the limit need none: what they take is in the row of the function they end in. Functions beyond
    it share one.
    """
    every = list(names.numbers)
    most = max(1000, min(NAME_LIMIT, CELL_LIMIT // max(processors, 1)))
    if len(every) <= most:
        return every, np.arange(len(every)), 0
    weights = sum((metric.compute_weights(len(every)) for metric in metrics), np.zeros(len(every)))
    flat = np.array([SEPARATOR not in name for name in every])
    order = np.lexsort((-weights, ~flat))[: most - 1]
    kept = np.sort(order)
    place = np.full(len(every), -1)
    place[kept] = np.arange(len(kept))
    place[flat & (place < 0)] = len(kept)
    return [*(every[n] for n in kept.tolist()), REST], place, len(every) - len(kept)
