"""The rows of all locations become the columns of ``Trace``, in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from advisor.formats.otf2.rows import ROW_TYPES, EventRows
from advisor.trace import spool
from advisor.trace.events import COMMUNICATING, Kind

if TYPE_CHECKING:
    from advisor.formats.otf2.communicators import Communicators
    from advisor.model.records import FloatArray, IntArray

#: Whether events of a kind belong to a communicator, by kind.
_IN_COMM = np.isin(np.arange(256), COMMUNICATING)
#: Rows handled at a time where temporary arrays are needed.
_BLOCK = 1 << 17
#: Rows after which columns on disk are let go of.
_KEPT = 1 << 20
#: From here on float64 no longer holds every tick.
_EXACT = 1 << 53


class TraceColumns:
    """Columns under construction, location after location; the first ``used`` rows are valid.

    ``room`` is the number of events that the chunk headers promise, of which not all become rows. Many lie on disk,
    and some blocks of them are in memory.
    """

    def __init__(self, room: int) -> None:
        self.used = 0
        self._rows = EventRows(**{name: _make_column(room, kind) for name, kind in ROW_TYPES.items()})

    @classmethod
    def of_rows(cls, rows: EventRows) -> TraceColumns:
        """Return the columns that these rows are."""
        columns = cls(0)
        columns._rows, columns.used = rows, len(rows.kind)
        return columns

    @property
    def rows(self) -> EventRows:
        """The valid rows, as views."""
        return self._rows.slice_rows(0, self.used)

    def append(self, rows: EventRows) -> None:
        """Add rows behind the others."""
        new = slice(self.used, self.used + len(rows.kind))
        columns: tuple[npt.NDArray[Any], ...] = self._rows
        for column, more in zip(columns, rows, strict=True):
            column[new] = more
        if new.start // _KEPT != new.stop // _KEPT:
            self._release_memory()
        self.used = new.stop

    def count_collectives(self, ends: IntArray, rank: IntArray) -> dict[int, Counter[int]]:
        """Return the number of collective operations of each rank, by communicator number (-1: unknown).

        The rows of location l, which is of ``rank[l]``, end before ``ends[l]``.
        """
        ranks = int(rank.max(initial=0)) + 1
        total: Counter[int] = Counter()
        for block in self._iterate_blocks(self.used):
            at = np.flatnonzero(self._rows.kind[block] == Kind.COLLECTIVE) + block.start
            key = (self._rows.comm[at] + 1).astype(np.int64) * ranks + rank[np.searchsorted(ends, at, side="right")]
            numbers, counts = np.unique(key, return_counts=True)
            total.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
        found: dict[int, Counter[int]] = {}
        for pair, count in total.items():
            found.setdefault(pair // ranks - 1, Counter())[pair % ranks] = count
        return found

    def resolve_partners(self, ends: IntArray, rank: IntArray, communicators: Communicators) -> int:
        """Turn communicator numbers and partners into communicators and ranks; locations as ``count_collectives``.

        Returns how many messages and collective operations stay without.
        """
        unknown = 0
        for block in self._iterate_blocks(self.used):
            concerned = np.flatnonzero(_IN_COMM[self._rows.kind[block]]) + block.start
            of_row = rank[np.searchsorted(ends, concerned, side="right")]
            chosen = communicators.find_candidates(of_row, self._rows.comm[concerned])
            partner = communicators.resolve_ranks(chosen, self._rows.partner[concerned])
            self._rows.partner[concerned] = partner
            self._rows.comm[concerned] = communicators.communicator[chosen]
            alone = (partner < 0) & (self._rows.kind[concerned] != Kind.COLLECTIVE)
            unknown += int(np.count_nonzero(alone | (self._rows.comm[concerned] < 0)))
        return unknown

    def find_backward_row(self, start: int) -> int | None:
        """Return the first row behind ``start``, those of a chunk, that is earlier than the one before it, or None."""
        ticks = self._rows.ticks[start : self.used]
        earlier = np.flatnonzero(ticks[1:] < ticks[:-1])
        return start + int(earlier[0]) + 1 if len(earlier) else None

    def name_undefined(self, region: int) -> None:
        """Give calls of regions that were never defined the number ``region``."""
        for block in self._iterate_blocks(self.used):
            undefined = (self._rows.region[block] < 0) & (self._rows.kind[block] <= Kind.LEAVE)
            self._rows.region[block][undefined] = region

    def to_seconds(self, offset: int, per_second: int) -> FloatArray:
        """Return the times since ``offset`` (or the first event, where that lies too far back), in seconds.

        The difference is taken in whole ticks; the result takes the place of ``ticks``.
        """
        ticks = self.rows.ticks
        begin = choose_begin(self.find_edges(), offset)
        result = ticks.view(np.float64)
        for block in self._iterate_blocks(len(ticks)):
            result[block] = (ticks[block] - np.uint64(begin)).view(np.int64) / per_second
        return result

    def find_edges(self) -> list[tuple[int, int]]:
        """Return the first and last ticks of blocks of rows."""
        ticks = self.rows.ticks
        return [(int(ticks[block].min()), int(ticks[block].max())) for block in self._iterate_blocks(len(ticks))]

    def _iterate_blocks(self, end: int) -> Iterator[slice[int, int, None]]:
        """Yield the rows in blocks; what lies on disk does not stay in memory."""
        for begin in range(0, end, _BLOCK):
            yield slice(begin, min(begin + _BLOCK, end))
            if begin // _KEPT != (begin + _BLOCK) // _KEPT:
                self._release_memory()
        self._release_memory()

    def _release_memory(self) -> None:
        spool.release_memory(self._rows)


def choose_begin(edges: list[tuple[int, int]], offset: int) -> int:
    """Return the tick that times are counted from: ``offset``, or the first one where that lies too far back."""
    far = edges and max(high for _, high in edges) - offset >= _EXACT
    return min(low for low, _ in edges) if far else offset


def _make_column(room: int, kind: str) -> npt.NDArray[Any]:
    """Return a column to be written: memory that is not written to is never taken."""
    return (
        spool.make_column(room, kind, 0, spooled=True) if room >= spool.SPOOLED_EVENTS else np.empty(room, dtype=kind)
    )
