"""Rows that no event stands for take their places between the others: ends of messages, beginnings of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from advisor.traces.events import RECEIVES, SENDS, Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from advisor.model import IntArray
    from advisor.readers.paraver.pairing import Ends

#: Classes of rows at one place, in their order.
_BEGIN, _MESSAGE, _END = 0, 1, 2


class Inserted:
    """The rows to insert as columns; ``message`` is -1 for beginnings and ends of threads."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.int64]] = []

    def add(self, thread: int, part: slice[int, int, None], ends: list[Ends], begin: int, end: int) -> None:
        """Add what a thread needs: the ends of its messages, and itself from ``begin`` to ``end``."""
        times = [each.ticks for each in ends if len(each.ticks)]
        if end < 0 and not times:
            return
        begin, end = (
            min([begin, *(int(each.min()) for each in times)]),
            max([end, *(int(each.max()) for each in times)]),
        )
        for each in ends:
            self._add(thread, _MESSAGE, part.start + each.before, each.kind, each.ticks, each.message)
        for place, edge, kind, ticks in ((part.start, _BEGIN, Kind.ENTER, begin), (part.stop, _END, Kind.LEAVE, end)):
            self._add(thread, edge, *(np.array([value]) for value in (place, kind, ticks, -1)))

    def _add(self, thread: int, edge: int, *columns: npt.NDArray[np.integer]) -> None:
        before, kind, ticks, message = columns
        same = (np.full(len(before), value) for value in (thread, edge))
        self._parts.append(np.stack((before, *same, ticks, kind, message)).astype(np.int64))

    def sorted(self) -> npt.NDArray[np.int64]:
        """Return the rows (before, thread, edge, ticks, kind, message) in the order in which they are inserted."""
        rows = np.concatenate([np.zeros((6, 0), dtype=np.int64), *self._parts], axis=1)
        self._parts.clear()
        return rows[:, np.lexsort((rows[5], rows[3], rows[2], rows[1], rows[0]))]


class Merge:
    """Old rows and inserted ones, one column at a time."""

    def __init__(self, inserted: Inserted, rows: int) -> None:
        before, self._thread, _, self.ticks, self.kind, self.message = inserted.sorted()
        self._old = np.arange(rows) + np.searchsorted(before, np.arange(rows), side="right")
        self._new = before + np.arange(len(before))
        self._sends = np.isin(self.kind, SENDS)
        self._receives = np.isin(self.kind, RECEIVES)

    def column(self, old: npt.NDArray[Any], new: npt.NDArray[Any] | int) -> npt.NDArray[Any]:
        """Return a column of all rows from those of the old and the inserted ones."""
        result = np.empty(len(self._old) + len(self._new), dtype=old.dtype)
        result[self._old] = old
        result[self._new] = new
        return result

    def of_ends(self, sent: IntArray, received: IntArray) -> IntArray:
        """Return for each inserted row the value of its message, another one for each end; -1 for other rows."""
        result = np.full(len(self.kind), -1, dtype=np.int64)
        result[self._sends] = sent[self.message[self._sends]]
        result[self._receives] = received[self.message[self._receives]]
        return result

    @property
    def regions(self) -> IntArray:
        """The region of each inserted row: the first one for beginnings and ends of threads."""
        return np.where(self.kind <= Kind.LEAVE, 0, -1)

    def first(self, old: IntArray) -> IntArray:
        """Return where each thread begins among all rows, from where it began among the old ones."""
        more = np.bincount(self._thread, minlength=len(old) - 1)
        shifted: IntArray = old + np.r_[0, np.cumsum(more)]
        return shifted
