"""The seconds of all windows put together: each window is added as it comes, and its cells lie on disk until the end.

What grows with the run is what the profile itself holds, once: sums are carried on from window to window, in the order
of time, so that they are to the bit what adding up all windows at once gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import numpy as np

from advisor.trace import causes
from advisor.trace.spool import ArrayStore
from advisor.trace.time_attribution import TimeAttribution

if TYPE_CHECKING:
    from advisor.model.records import Causes, FloatArray, IntArray

#: Rows of causes up to which those of several windows wait to be merged with the others.
WAITING_CAUSES: Final = 1 << 17

T = TypeVar("T", float, "FloatArray")


class _StoredRows(NamedTuple):
    """Those rows of a measure in a phase that hold seconds, as region * 2 + threaded, and what returns their cells."""

    rows: IntArray
    take_cells: Callable[[], FloatArray]


class _WindowCells(NamedTuple):
    """Of one phase in one window the rows, the iterations, and the cells of each measure."""

    rows: IntArray
    iterations: int
    cells: Mapping[str, _StoredRows]


def merge_attributions(parts: Iterable[TimeAttribution]) -> TimeAttribution:
    """Return what all windows, in the order of time, hold together."""
    merger = _Merger()
    for part in parts:
        merger.add_window(part)
    return merger.join_windows()


class _Merger:
    """What the windows so far hold together."""

    def __init__(self) -> None:
        self._store = ArrayStore()
        self._rows: IntArray = np.zeros(0, dtype=np.int64)
        self._phases: list[list[_WindowCells]] = []
        self._closing_wait_s: list[FloatArray] = []
        self._outside: dict[str, FloatArray] = {}
        self._counts: dict[str, FloatArray] = {}
        self._guessed: dict[str, float] = {}
        self._total: dict[str, float] = {}
        self._causes: list[tuple[IntArray, Causes]] = []

    def add_window(self, part: TimeAttribution) -> None:
        """Add the window that follows."""
        rows = np.union1d(self._rows, part.rows)
        self._counts = {name: _spread_rows(values, self._rows, rows) for name, values in self._counts.items()}
        counts = {name: _spread_rows(values, part.rows, rows) for name, values in part.counts.items()}
        self._rows = rows
        self._counts = _add_by_name(self._counts, counts)
        self._outside = _add_by_name(self._outside, part.outside)
        self._guessed = _add_by_name(self._guessed, part.guessed)
        self._total = _add_by_name(self._total, part.total)
        self._closing_wait_s.append(part.closing_wait_s)
        self._phases += [[] for _ in range(len(part.blocks) - len(self._phases))]
        for cells, block, own in zip(self._phases, part.blocks, part.phase_rows, strict=True):
            cells.append(self._put_away(part.rows[own], block))
        self._causes.append((part.rows, part.causes))
        before, *waiting = (len(each.seconds) for _, each in self._causes)
        if sum(waiting) > max(WAITING_CAUSES, before):
            self._merge_causes()

    def join_windows(self) -> TimeAttribution:
        """Return what all windows hold together."""
        self._merge_causes()
        phase_rows, blocks = [], []
        for cells in self._phases:
            rows = np.unique(np.concatenate([each.rows for each in cells]))
            phase_rows.append(np.searchsorted(self._rows, rows))
            blocks.append(_join_iterations(rows, cells))
        return TimeAttribution(
            rows=self._rows,
            phase_rows=tuple(phase_rows),
            blocks=tuple(blocks),
            closing_wait_s=np.vstack(self._closing_wait_s),
            outside=self._outside,
            counts=self._counts,
            causes=self._causes[0][1],
            guessed=self._guessed,
            total=self._total,
        )

    def _put_away(self, rows: IntArray, block: Mapping[str, FloatArray]) -> _WindowCells:
        cells = {}
        for measure, array in block.items():
            some = array.any(axis=(1, 2))
            cells[measure] = _StoredRows(rows[some], self._store.spill_array(array[some]))
        return _WindowCells(rows, next(iter(block.values())).shape[2], cells)

    def _merge_causes(self) -> None:
        places = [np.searchsorted(self._rows, rows) for rows, _ in self._causes]
        self._causes = [(self._rows, causes.merge_causes([each for _, each in self._causes], places))]


def _spread_rows(values: FloatArray, rows: IntArray, among: IntArray) -> FloatArray:
    """Return (rows of ``among``, locations) values of ``rows``, which are some of those."""
    if len(rows) == len(among):
        return values
    spread = np.zeros((len(among), values.shape[1]))
    spread[np.searchsorted(among, rows)] = values
    return spread


def _add_by_name(before: dict[str, T], more: Mapping[str, T]) -> dict[str, T]:
    """Return the sums of what bears the same name."""
    return before | {name: before[name] + value if name in before else value for name, value in more.items()}


def _join_iterations(rows: IntArray, parts: Sequence[_WindowCells]) -> dict[str, FloatArray]:
    """Return the arrays (rows, locations, iterations) of one phase; rows without seconds take no memory."""
    joined = {}
    for measure, first in parts[0].cells.items():
        shape = len(rows), first.take_cells().shape[1], sum(part.iterations for part in parts)
        joined[measure] = np.zeros(shape)
        done = 0
        for part in parts:
            cells = part.cells[measure]
            place = np.searchsorted(rows, cells.rows)
            joined[measure][place, :, done : done + part.iterations] = cells.take_cells()
            done += part.iterations
    return joined
